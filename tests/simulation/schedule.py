"""Whose turn it is: one seeded choice after another, in virtual time."""

from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Protocol

from aiki_push.domain.values import DurationMs, TimestampMs
from aiki_push.testing import FAKE_NOW

LONGEST_TURN_US = 500
"""Virtual time that one turn takes, at most."""


class Violation(AssertionError):
    """An invariant does not hold."""


class Actor(Protocol):
    """Somebody who does one thing at a time, when it is its turn."""

    @property
    def due_us(self) -> int | None:
        """When it can do its next thing; None while there is nothing for it to do."""
        ...

    def act(self) -> str:
        """Do it; what it was, "" where that goes without saying."""
        ...


@dataclass(frozen=True, slots=True)
class Once:
    """Something that happens once, at `due_us` or later."""

    due_us: int
    what: str
    action: Callable[[], object]

    def act(self) -> str:
        self.action()
        return self.what


class Schedule:
    """Gives turns to actors, one at a time; who is next among those who can is a matter of `random`.

    `now_us` are microseconds of virtual time since the beginning. Time passes by turns and, while nobody can do anything, by jumps.
    """

    def __init__(self, random: Random) -> None:
        self.random = random
        self.now_us = 0
        self.steps = 0
        self.trace: list[str] = []
        self._actors: list[Actor] = []
        self._violations: list[str] = []

    def add(self, actor: Actor) -> None:
        """Give turns to `actor` too."""
        self._actors.append(actor)

    def remove(self, actor: Actor) -> None:
        """Give `actor` no more turns."""
        self._actors.remove(actor)

    def later(self, delay_us: int, what: str, action: Callable[[], object]) -> None:
        """Have `action` happen once, after `delay_us` at the earliest."""
        self.add(Once(self.now_us + delay_us, what, action))

    def note(self, what: str) -> None:
        """Add a line to the trace."""
        self.trace.append(f"{self.now_us / 1e6:14.6f}  {what}")

    def report(self, violation: str) -> None:
        """Have this turn end with a Violation: for places from which an exception would not come through."""
        self._violations.append(violation)

    def step(self) -> None:
        """Give one turn. Raises Violation."""
        due = [(at_us, actor) for actor in self._actors if (at_us := actor.due_us) is not None]
        self.now_us = max(self.now_us, min(at_us for at_us, _ in due))
        actor = self.random.choice([actor for at_us, actor in due if at_us <= self.now_us])
        if isinstance(actor, Once):
            self.remove(actor)
        self.steps += 1
        if what := actor.act():
            self.note(what)
        self.now_us += self.random.randrange(LONGEST_TURN_US)
        if self._violations:
            raise Violation("; ".join(self._violations))


class VirtualClock:
    """A Clock that shows the schedule's time. Whose `sleep` it is says the subclass; here nobody may block."""

    def __init__(self, schedule: Schedule, skew_ms: int = 0) -> None:
        self._schedule = schedule
        self._skew_ms = skew_ms

    def now(self) -> TimestampMs:
        """See Clock; wrong by the clock's skew."""
        return TimestampMs(FAKE_NOW + self._skew_ms + self._schedule.now_us // 1_000)

    def monotonic_ms(self) -> float:
        """See Clock."""
        return self._schedule.now_us / 1_000

    def sleep(self, duration_ms: DurationMs) -> None:
        """Refused."""
        raise Violation(f"something that must not block wants to sleep for {duration_ms} ms")


class SeededEntropy:
    """An Entropy that is the same for one seed."""

    def __init__(self, random: Random) -> None:
        self._random = random

    def token(self, size: int) -> bytes:
        """See Entropy."""
        return self._random.randbytes(size)

    def fraction(self) -> float:
        """See Entropy."""
        return self._random.random()
