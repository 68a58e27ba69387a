"""Timers of a workflow: deadlines in whole milliseconds, which a run can be parked on."""

import asyncio
from collections.abc import Callable
from contextvars import Context

from aiki_push.domain.values import TimestampMs

NEVER = TimestampMs(253_402_300_800_000)
"""The year 10000. A timer due then or later never fires and is nothing that a run could wait for."""


def up_to_ms(seconds: float) -> int:
    """`seconds` in milliseconds, rounded up, at most `NEVER`.

    First to whole microseconds: today's time as a float of seconds is exact to 0.24 µs, and such an error must not add a millisecond.

    Raises:
        ValueError: for NaN.
    """
    return NEVER if seconds >= NEVER / 1000 else -(-round(seconds * 1_000_000) // 1000)


class DurableTimer(asyncio.TimerHandle):
    """A call that is due at `deadline_at`, the timer number `ordinal` of its branch. It is in `open_timers` until fired or cancelled."""

    __slots__ = ("_open_timers", "_queue", "_queued", "branch", "deadline_at", "number", "ordinal")

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        queue: Callable[[], asyncio.Handle],
        open_timers: dict[int, "DurableTimer"],
        *,
        number: int,
        branch: str,
        ordinal: int,
        deadline_at: TimestampMs,
    ) -> None:
        super().__init__(deadline_at / 1000, queue, (), loop, Context())
        self._queue = queue
        self._queued: asyncio.Handle | None = None
        self._open_timers = open_timers
        self.number = number
        self.branch = branch
        self.ordinal = ordinal
        self.deadline_at = deadline_at

    def fire(self) -> None:
        """Let the loop make the call in its next step. Nothing happens if the timer is no longer open."""
        if self._open_timers.pop(self.number, None):
            self._queued = self._queue()

    def cancel(self) -> None:
        """Never make the call, not even if the timer has fired and the loop has not come to it yet."""
        self._open_timers.pop(self.number, None)
        if self._queued:
            self._queued.cancel()
        asyncio.Handle.cancel(self)
