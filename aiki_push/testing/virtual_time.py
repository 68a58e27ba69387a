"""An event loop in virtual time: nobody waits for a timer, the clock says that its time has come."""

import asyncio
import selectors
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Executor
from contextvars import Context, ContextVar, copy_context
from math import ceil
from typing import Any, Protocol, TypeAlias, TypeVar, TypeVarTuple

from aiki_push.domain.errors import AikiError
from aiki_push.testing.clocks import FakeClock

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

TASK_THREAD = "aiki-push task"
"""The name of the threads in which handlers of tasks run that are plain functions."""

POLL_S = 0.01
"""How long at a time a working thread is really waited for. What it does wakes the loop at once; this is for the end of the thread."""

NEVER_S = 1e10
"""A timer due in three hundred years or more never is: `asyncio.sleep(math.inf)` waits for ever."""

_in_background: ContextVar[bool] = ContextVar("aiki_push: in the background", default=False)


class NothingHappens(AikiError):
    """Everything waits, and for nothing that can ever come. The message says who waits for what; bring it, or wait with a timeout."""


def background() -> Context:
    """A copy of the present context whose timers are in the background: they go on for ever, so they alone keep nothing going."""
    context = copy_context()
    context.run(_in_background.set, True)
    return context


class VirtualLoop(asyncio.SelectorEventLoop):
    """An event loop whose time is that of `clock`. Timers are due at whole milliseconds, rounded up.

    When nothing is ready, `on_idle` is called with the milliseconds until the next timer, a day at most; None where there is no
    timer. It advances the clock by that or less, or calls something soon, or raises. Left out: it advances the clock by that, and
    raises NothingHappens without a timer.
    While a thread works (a task that is a plain function, or `asyncio.to_thread`) it is really waited for, and no time passes:
    `on_idle` is called with 0.
    """

    def __init__(self, clock: FakeClock, on_idle: Callable[[int | None], None] | None = None) -> None:
        self._clock = clock
        self._foreground: list[asyncio.TimerHandle] = []
        self._in_executors = 0
        self._older_threads = frozenset(threading.enumerate())
        super().__init__(_Selector(self._is_working, on_idle or self._jump))

    def time(self) -> float:
        """The clock's monotonic time, in seconds."""
        return self._clock.monotonic_ms() / 1_000

    @property
    def foreground_ms(self) -> int | None:
        """Milliseconds until the next timer that is not in the background, None where there is none."""
        now = self.time()
        self._foreground = [timer for timer in self._foreground if not timer.cancelled() and timer.when() > now]
        left_s = min((timer.when() - now for timer in self._foreground), default=None)
        return None if left_s is None else ceil(left_s * 1_000)

    def call_at(
        self, when: float, callback: Callable[[*Ts], object], *args: *Ts, context: Context | None = None
    ) -> asyncio.TimerHandle:
        """See asyncio. The timer's `when()` is half a millisecond early: no error of a float may make it late, or never due."""
        context = copy_context() if context is None else context
        if when >= NEVER_S:
            return asyncio.TimerHandle(when, callback, args, self, context)
        due_ms = ceil(round(when * 1_000, 2))  # a float holds so many seconds to 2 µs, and that must not add a millisecond
        timer = super().call_at((due_ms - 0.5) / 1_000, callback, *args, context=context)
        if not context.get(_in_background, False):
            self._foreground.append(timer)
        return timer

    def run_in_executor(self, executor: Executor | None, func: Callable[[*Ts], T], *args: *Ts) -> asyncio.Future[T]:
        """See asyncio."""
        future = super().run_in_executor(executor, func, *args)
        self._in_executors += 1
        future.add_done_callback(self._left_executor)
        return future

    def _left_executor(self, _: asyncio.Future[T]) -> None:
        self._in_executors -= 1

    def _is_working(self) -> bool:
        return self._in_executors > 0 or any(
            thread.name == TASK_THREAD and thread not in self._older_threads for thread in threading.enumerate()
        )

    def _jump(self, left_ms: int | None) -> None:
        if left_ms is None:
            raise NothingHappens("everything on the event loop waits, and for nothing that can ever come")
        self._clock.advance(left_ms)


class _HasFileno(Protocol):
    def fileno(self) -> int: ...


_File: TypeAlias = int | _HasFileno


class _Selector(selectors.BaseSelector):
    """The machine's selector, which waits for threads and for nothing else."""

    def __init__(self, is_working: Callable[[], bool], on_idle: Callable[[int | None], None]) -> None:
        self._is_working = is_working
        self._on_idle = on_idle
        self._real = selectors.DefaultSelector()

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is not None and timeout <= 0:
            return self._real.select(0)
        # Asked before the look at the files: a thread that has ended by now has already written what wakes the loop.
        is_working = self._is_working()
        events = self._real.select(POLL_S if is_working else 0)
        if not events:
            self._on_idle(0 if is_working else None if timeout is None else ceil(timeout * 1_000))
        return events

    def register(self, fileobj: _File, events: int, data: object = None) -> selectors.SelectorKey:
        return self._real.register(fileobj, events, data)

    def unregister(self, fileobj: _File) -> selectors.SelectorKey:
        return self._real.unregister(fileobj)

    def get_map(self) -> Mapping[Any, selectors.SelectorKey]:  # the keys' type has no public name
        return self._real.get_map()

    def close(self) -> None:
        self._real.close()
