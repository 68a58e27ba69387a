"""The clock and the timers of a workflow: deadlines in whole milliseconds, which a run can be parked on."""

import asyncio
from collections.abc import Callable
from contextvars import Context
from operator import attrgetter

from aiki_push.domain.values import TimestampMs
from aiki_push.sdk.replay.branches import Lineage

NEVER = TimestampMs(253_402_300_800_000)
"""The year 10000. A timer due then or later never fires and is nothing that a run could wait for."""


def up_to_ms(seconds: float) -> int:
    """`seconds` in milliseconds, rounded up, at most `NEVER`.

    First to whole microseconds: a float holds the seconds since 1970 to 0.24 µs, and that error must not add a millisecond.

    Raises:
        ValueError: for NaN.
    """
    return NEVER if seconds >= NEVER / 1000 else -(-round(seconds * 1_000_000) // 1000)


class DurableTimer(asyncio.TimerHandle):
    """A call due at `deadline_at`, open until fired or cancelled; number `ordinal` (from 1) in its branch, `number` in all."""

    __slots__ = ("_queue", "_queued", "_timers", "branch", "deadline_at", "number", "ordinal")

    def __init__(
        self,
        timers: "Timers",
        queue: Callable[[], asyncio.Handle],
        *,
        number: int,
        branch: str,
        ordinal: int,
        deadline_at: TimestampMs,
    ) -> None:
        super().__init__(deadline_at / 1000, queue, (), timers.loop, Context())
        self._timers = timers
        self._queue = queue
        self._queued: asyncio.Handle | None = None
        self.number = number
        self.branch = branch
        self.ordinal = ordinal
        self.deadline_at = deadline_at

    def fire(self) -> None:
        """Let the loop make the call in its next step. Nothing happens if the timer is no longer open."""
        if self._timers.close(self):
            self._queued = self._queue()

    def cancel(self) -> None:
        """Never make the call, not even if the timer has fired and the loop has not come to it yet."""
        self._timers.close(self)
        if self._queued:
            self._queued.cancel()
        asyncio.Handle.cancel(self)


class Timers:
    """The clock of a workflow, in milliseconds since 1970, and its open timers."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self.now_at = TimestampMs(0)
        self._created = 0
        self._open: dict[int, DurableTimer] = {}
        self._in_order: list[DurableTimer] | None = []

    def call_at(self, deadline: int, queue: Callable[[], asyncio.Handle], lineage: Lineage) -> DurableTimer:
        """A timer of the branch, which queues its call at `deadline`. One that is due already does so now, and has ordinal 0."""
        deadline_at = TimestampMs(max(deadline, self.now_at))
        waits = deadline_at > self.now_at
        ordinal = lineage.next_timer() if waits else 0
        self._created += 1
        timer = DurableTimer(self, queue, number=self._created, branch=lineage.name, ordinal=ordinal, deadline_at=deadline_at)
        if deadline_at < NEVER:
            self._open[timer.number] = timer
            self._in_order = None
        if not waits:
            timer.fire()
        return timer

    def close(self, timer: DurableTimer) -> bool:
        """Forget the timer; whether it was open."""
        self._in_order = None
        return self._open.pop(timer.number, None) is not None

    def close_all(self) -> None:
        """Forget every timer."""
        self._open, self._in_order = {}, []

    def in_order(self) -> list[DurableTimer]:
        """The open timers by deadline, then by creation."""
        if self._in_order is None:
            self._in_order = sorted(self._open.values(), key=attrgetter("deadline_at"))
        return self._in_order
