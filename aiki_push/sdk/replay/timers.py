"""The clock and the timers of a workflow: deadlines in whole milliseconds, which a run can be parked on."""

import asyncio
from collections.abc import Callable, Sequence
from contextvars import Context, copy_context
from functools import partial
from operator import attrgetter
from typing import TypeVarTuple

from aiki_push.domain.values import TimestampMs
from aiki_push.sdk.replay.outside_world import OutsideWorld

Ts = TypeVarTuple("Ts")

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

    __slots__ = ("_call_soon", "_called", "_clock", "branch", "deadline_at", "number", "ordinal")

    def __init__(
        self,
        clock: "Clock",
        call_soon: Callable[[], asyncio.Handle],
        *,
        number: int,
        branch: str,
        ordinal: int,
        deadline_at: TimestampMs,
    ) -> None:
        super().__init__(deadline_at / 1000, call_soon, (), clock, Context())
        self._clock = clock
        self._call_soon = call_soon
        self._called: asyncio.Handle | None = None
        self.number = number
        self.branch = branch
        self.ordinal = ordinal
        self.deadline_at = deadline_at

    def fire(self) -> None:
        """Let the loop make the call in its next step. Nothing happens if the timer is no longer open."""
        if self._clock.forget_timer(self):
            self._called = self._call_soon()

    def cancel(self) -> None:
        """Never make the call, not even if the timer has fired and the loop has not come to it yet."""
        self._clock.forget_timer(self)
        if self._called:
            self._called.cancel()
        asyncio.Handle.cancel(self)


class Clock(OutsideWorld):
    """The part of the workflow's event loop that has its time."""

    def __init__(self) -> None:
        super().__init__()
        self._now_at = TimestampMs(0)
        self._timers_created = 0
        self._open_timers: dict[int, DurableTimer] = {}
        self._in_order: list[DurableTimer] | None = []

    @property
    def now_at(self) -> TimestampMs:
        """The workflow's clock: the time of the latest thing it was given, the same on every replay."""
        return self._now_at

    def set_time_ms(self, at: TimestampMs) -> None:
        """Move the workflow's clock on to `at`; it never goes back."""
        self._now_at = max(self._now_at, at)

    def time(self) -> float:
        """The workflow's clock in seconds since 1970."""
        return self._now_at / 1000

    @property
    def timers(self) -> Sequence[DurableTimer]:
        """The open timers by deadline, then by creation."""
        if self._in_order is None:
            self._in_order = sorted(self._open_timers.values(), key=attrgetter("deadline_at"))
        return self._in_order

    def forget_timer(self, timer: DurableTimer) -> bool:
        """Take the timer from the open ones; whether it was one of them."""
        self._in_order = None
        return self._open_timers.pop(timer.number, None) is not None

    def call_later(
        self, delay: float, callback: Callable[[*Ts], object], *args: *Ts, context: Context | None = None
    ) -> asyncio.TimerHandle:
        """A durable timer due after `delay` seconds, rounded up to milliseconds; without a delay a plain call."""
        return self._call_at(self._now_at + up_to_ms(delay), partial(callback, *args), context)

    def call_at(
        self, when: float, callback: Callable[[*Ts], object], *args: *Ts, context: Context | None = None
    ) -> asyncio.TimerHandle:
        """A durable timer due at `when` (seconds of `time()`), rounded up to milliseconds; a plain call if that has passed."""
        return self._call_at(up_to_ms(when), partial(callback, *args), context)

    def _call_at(self, deadline: int, callback: Callable[[], object], context: Context | None) -> DurableTimer:
        deadline_at = TimestampMs(max(deadline, self._now_at))
        waits = deadline_at > self._now_at
        self._timers_created += 1
        timer = DurableTimer(
            self,
            partial(self.call_soon, callback, context=copy_context() if context is None else context),
            number=self._timers_created,
            branch=self.branch,
            ordinal=self.lineage.next_timer() if waits else 0,
            deadline_at=deadline_at,
        )
        if deadline_at < NEVER:
            self._open_timers[timer.number] = timer
            self._in_order = None
        if not waits:
            timer.fire()
        return timer
