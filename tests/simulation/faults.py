"""What goes wrong, and how often."""

from dataclasses import dataclass, fields, replace
from random import Random

SECOND_US = 1_000_000

USUAL_DELAY_US = 20_000
"""Of a message, and of an access to the table."""

LONG_DELAY_US = 200 * SECOND_US
"""Beyond every timeout and the life of two claims."""

LONG_FREEZE_US = 300 * SECOND_US


@dataclass(frozen=True, slots=True)
class Faults:
    """Probabilities. Those of messages, table accesses and hints are for each of them, `kill` and `freeze` for each step.

    lose, double, delay: requests, answers, pushes and hints.
    lose_hints: hints alone.
    refuse: an access to the table fails, before it has an effect or afterwards.
    stall: an access to the table takes long.
    crash: the server process dies at an access to the table.
    stale: an index shows what it showed before.
    """

    lose: float = 0
    double: float = 0
    delay: float = 0
    lose_hints: float = 0
    refuse: float = 0
    stall: float = 0
    crash: float = 0
    stale: float = 0
    kill: float = 0
    freeze: float = 0


CALM = Faults()

_WORST = Faults(
    lose=0.2, double=0.3, delay=0.1, lose_hints=1, refuse=0.2, stall=0.03, crash=0.03, stale=0.5, kill=0.02, freeze=0.02
)


def draw(random: Random) -> Faults:
    """Some kinds of fault, each at some strength: what breaks a system is often few of them together, without the others."""
    share = random.random()
    chosen = {
        field.name: getattr(_WORST, field.name) * random.random() ** 2 for field in fields(Faults) if random.random() < share
    }
    return replace(CALM, **chosen)


class Misfortune:
    """Decides for each occasion what goes wrong, by `faults`, which may be changed at any time."""

    def __init__(self, random: Random, faults: Faults) -> None:
        self.random = random
        self.faults = faults

    def strikes(self, probability: float) -> bool:
        """Whether this happens now."""
        return self.random.random() < probability

    def message_delays_us(self) -> list[int]:
        """One delay for each copy of a message that arrives."""
        if self.strikes(self.faults.lose):
            return []
        copies = 2 if self.strikes(self.faults.double) else 1
        return [self._delay_us(self.faults.delay) for _ in range(copies)]

    def access_us(self) -> int:
        """How long an access to the table takes."""
        return self._delay_us(self.faults.stall)

    def freeze_us(self) -> int:
        """How long a process stands still."""
        return self.random.randrange(LONG_FREEZE_US)

    def _delay_us(self, probability: float) -> int:
        return self.random.randrange(LONG_DELAY_US if self.strikes(probability) else USUAL_DELAY_US)
