"""What goes wrong, and how often."""

from dataclasses import dataclass, fields, replace
from random import Random

SECOND_US = 1_000_000

USUAL_DELAY_US = 20_000
"""Of a message, and of an access to the table."""

LONG_DELAYS_US = (2 * SECOND_US, 20 * SECOND_US, 200 * SECOND_US)
"""A long delay is at most one of these: about as long as a task takes, as an executor waits, or as two claims live."""

SLOWNESS = 20
"""Of a slow request: while it looks and decides, a quick executor writes."""

PAUSES_S = ((0, 5), (85, 125), (125, 300))
"""A pause is short, or about as long as a claim lives, or longer."""


@dataclass(frozen=True, slots=True)
class Faults:
    """Probabilities, but for the skew: of messages, requests, accesses and executors for each of them; the last four for each step.

    lose, double, delay: requests, answers, pushes and hints.
    lose_hints: hints alone.
    refuse: an access to the table fails, before it has an effect or afterwards.
    stall: an access to the table takes long.
    slow: a request of the world's is served slowly.
    crash: the server process dies at an access to the table.
    stale: an index shows what it showed before.
    skew: how wrong the clocks of servers are, in seconds.
    cut: before or after a request, its sender is cut off from everybody for a while.
    mute: the refreshes of an executor never arrive, as they have a connection of their own.
    kill, freeze: an executor dies, or stands still for a while.
    rob: a run is recovered although its owner lives.
    direct: the owner of a run is told to pause or cancel it, as one that could not be caught up with is.
    """

    lose: float = 0
    double: float = 0
    delay: float = 0
    lose_hints: float = 0
    refuse: float = 0
    stall: float = 0
    slow: float = 0
    crash: float = 0
    stale: float = 0
    skew: float = 0
    cut: float = 0
    mute: float = 0
    kill: float = 0
    freeze: float = 0
    rob: float = 0
    direct: float = 0


CALM = Faults()

_WORST = Faults(
    lose=0.2,
    double=0.3,
    delay=0.1,
    lose_hints=1,
    refuse=0.2,
    stall=0.03,
    slow=0.3,
    crash=0.03,
    stale=0.5,
    skew=1,
    cut=0.1,
    mute=1,
    kill=0.02,
    freeze=0.02,
    rob=0.02,
    direct=0.02,
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

    def slowness(self) -> int:
        """How many times slower than an executor's a request of the world's is served."""
        return SLOWNESS if self.strikes(self.faults.slow) else 1

    def access_us(self) -> int:
        """How long an access to the table takes."""
        return self._delay_us(self.faults.stall)

    def skew_ms(self) -> int:
        """By how much the clock of a server is wrong."""
        return round((2 * self.random.random() - 1) * 1_000 * self.faults.skew)

    def pause_us(self) -> int:
        """For how long a process stands still, or is cut off."""
        least_s, most_s = self.random.choice(PAUSES_S)
        return self.random.randrange(least_s * SECOND_US, most_s * SECOND_US)

    def _delay_us(self, probability: float) -> int:
        return self.random.randrange(self.random.choice(LONG_DELAYS_US) if self.strikes(probability) else USUAL_DELAY_US)
