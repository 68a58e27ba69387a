"""What one simulation is about: what goes wrong, what the world does, and which workflows are started."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from random import Random

from tests.simulation import faults, outsiders
from tests.simulation.faults import CALM, Faults
from tests.simulation.outsiders import Habits
from tests.simulation.segments import PACES_S
from tests.simulation.servers import SWEEP_INTERVAL_S
from tests.simulation.workflows import SCENARIOS

MOST_STARTS = 5

STARTABLE = tuple(name for name in sorted(SCENARIOS) if not SCENARIOS[name].takes_input)

LONG = ("sequence", "chains", "group", "retries", "again", "crowd", "contest", "chatty", "family")
"""Workflows with segments that last longer than a claim."""


@dataclass(frozen=True, slots=True)
class Scene:
    """The names are those of the workflows, one for each run that is started. `pace_s` is how long handlers take at most."""

    faults: Faults
    habits: Habits
    names: Sequence[str]
    pace_s: float
    sweep_interval_s: int = SWEEP_INTERVAL_S


def draw(random: Random) -> Scene:
    """Mostly anything; sometimes what chance alone would hardly bring together."""
    names = random.choices(random.sample(STARTABLE, k=random.randint(1, 4)), k=random.randint(1, MOST_STARTS))
    scene = Scene(faults.draw(random), outsiders.draw(random), names, random.choice(PACES_S))
    chance = random.random()
    if chance < 0.1:
        return _unheard(random, scene)
    return _busy(random, scene) if chance < 0.2 else scene


def _unheard(random: Random, scene: Scene) -> Scene:
    """Executors whose answers are lost, and whose refreshes are, too: they give up before anybody takes the run from them."""
    return Scene(
        replace(CALM, mute=1, lose=0.2 + 0.3 * random.random(), lose_hints=1, rob=0.002 * random.random()),
        scene.habits,
        random.choices(LONG, k=len(scene.names)),
        max(PACES_S),
        sweep_interval_s=10 * SWEEP_INTERVAL_S,
    )


def _busy(random: Random, scene: Scene) -> Scene:
    """Executors that are faster than the servers that are to stop them: those can only direct them to stop."""
    slow = replace(CALM, slow=random.random(), refuse=0.05 * random.random(), lose=0.05 * random.random())
    rates = {"pause": 0.02, "resume": 0.02, "cancel": 0.01, "event": 0.01}
    names = ["busy", *random.choices(["busy", "governor", "timid", *scene.names], k=2)]
    return Scene(slow, replace(scene.habits, rates=rates), names, min(PACES_S))
