"""A process as an event loop that makes one call whenever it is its turn. It can die and freeze between any two of them."""

import asyncio
import heapq
from collections import deque
from collections.abc import Callable, Coroutine, Generator, Mapping
from contextvars import Context, copy_context
from math import ceil
from typing import Any, NamedTuple, TypeVar, TypeVarTuple

from tests.simulation.schedule import Schedule, Violation

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

MAX_BURIAL_ROUNDS = 100


def start_process(name: str, schedule: Schedule) -> "Process":
    """A process that has its turns in `schedule`."""
    process = Process(name, schedule)  # type: ignore[abstract]  # what nobody here calls is left out
    schedule.add(process)
    return process


class _Call(NamedTuple):
    handle: asyncio.Handle
    context: Context
    callback: Callable[..., object]
    args: tuple[Any, ...]


class _Timer(NamedTuple):
    due_us: int
    number: int
    call: _Call


class Process(asyncio.AbstractEventLoop):
    """An event loop in virtual time, and an Actor. Once killed it makes no call any more, not even a `finally`."""

    def __init__(self, name: str, schedule: Schedule) -> None:
        self.name = name
        self.is_dead = False
        self._schedule = schedule
        self._frozen_until_us = 0
        self._ready: deque[_Call] = deque()
        self._timers: list[_Timer] = []
        self._numbers = 0
        self._when_idle: list[Callable[[], None]] = []

    def __repr__(self) -> str:
        return self.name

    # What the simulation does with it.

    @property
    def due_us(self) -> int | None:
        """See Actor."""
        if self.is_dead:
            return None
        while self._timers and self._timers[0].call.handle.cancelled():
            heapq.heappop(self._timers)
        if not self._ready and not self._timers:
            return None
        return max(self._frozen_until_us, 0 if self._ready else self._timers[0].due_us)

    def act(self) -> str:
        """Make one call."""
        while self._timers and self._timers[0].due_us <= self._schedule.now_us:
            self._ready.append(heapq.heappop(self._timers).call)
        call = self._ready.popleft()
        self._make(call)
        if not self._ready:
            for tell in self._when_idle:
                tell()
            self._when_idle.clear()
        return ""

    def spawn(self, coroutine: Coroutine[Any, Any, T], context: Context | None = None) -> asyncio.Task[T]:
        """A task from outside; what it raises is a violation."""
        task: asyncio.Task[T] = asyncio.Task(coroutine, loop=self, context=context)
        task.add_done_callback(self._check)
        return task

    def when_idle(self, tell: Callable[[], None]) -> None:
        """Call `tell` once every call that is ready by now, and what comes of it, has been made."""
        self._when_idle.append(tell)

    @property
    def is_frozen(self) -> bool:
        """Whether it stands still and will go on."""
        return not self.is_dead and self._frozen_until_us > self._schedule.now_us

    def freeze(self, duration_us: int) -> None:
        """Stand still; timers that become due meanwhile are seen afterwards."""
        self._frozen_until_us = self._schedule.now_us + duration_us

    def thaw(self) -> None:
        """Go on."""
        self._frozen_until_us = 0

    def kill(self) -> None:
        """Stop for ever."""
        self.is_dead = True

    def bury(self) -> None:
        """End what a dead process left, which Python would otherwise do at a time of its own, and complain."""
        for _ in range(MAX_BURIAL_ROUNDS):
            if not (tasks := asyncio.all_tasks(self)):
                return
            for task in tasks:
                task.cancel()
            while self._ready:
                self._make(self._ready.popleft())
        raise Violation(f"{self.name} has tasks that do not end when they are cancelled")

    def _make(self, call: _Call) -> None:
        if call.handle.cancelled():
            return
        asyncio._set_running_loop(self)
        try:
            call.context.run(call.callback, *call.args)
        finally:
            asyncio._set_running_loop(None)

    def _check(self, task: asyncio.Task[Any]) -> None:
        if not self.is_dead and not task.cancelled() and (error := task.exception()):
            self._schedule.report(f"{self.name}: {task.get_coro()} raised {error!r}")

    # What asyncio asks of an event loop.

    def time(self) -> float:
        """Seconds of virtual time."""
        return self._schedule.now_us / 1e6

    def call_soon(self, callback: Callable[[*Ts], object], *args: *Ts, context: Context | None = None) -> asyncio.Handle:
        """See asyncio."""
        call = self._call(callback, args, context)
        self._ready.append(call)
        return call.handle

    def call_soon_threadsafe(
        self, callback: Callable[[*Ts], object], *args: *Ts, context: Context | None = None
    ) -> asyncio.Handle:
        """See asyncio; one thread runs at a time here."""
        return self.call_soon(callback, *args, context=context)

    def call_later(
        self, delay: float, callback: Callable[[*Ts], object], *args: *Ts, context: Context | None = None
    ) -> asyncio.TimerHandle:
        """See asyncio."""
        return self.call_at(self.time() + delay, callback, *args, context=context)

    def call_at(
        self, when: float, callback: Callable[[*Ts], object], *args: *Ts, context: Context | None = None
    ) -> asyncio.TimerHandle:
        """See asyncio."""
        if context is None:
            context = copy_context()
        handle = asyncio.TimerHandle(when, callback, args, self, context)
        self._numbers += 1
        # A float holds these seconds to far less than a nanosecond; that error must not add a microsecond.
        due_us = ceil(round(when * 1e6, 3))
        heapq.heappush(self._timers, _Timer(due_us, self._numbers, _Call(handle, context, callback, args)))
        return handle

    def create_future(self) -> asyncio.Future[Any]:
        """See asyncio."""
        return asyncio.Future(loop=self)

    def create_task(
        self,
        coro: Generator[Any, None, T] | Coroutine[Any, Any, T],
        *,
        name: str | None = None,
        context: Context | None = None,
        eager_start: bool | None = None,  # noqa: ARG002 - part of the interface from Python 3.14
    ) -> asyncio.Task[T]:
        """See asyncio."""
        return asyncio.Task(coro, loop=self, name=name, context=context)

    def get_debug(self) -> bool:
        """See asyncio."""
        return False

    def is_closed(self) -> bool:
        """See asyncio."""
        return False

    def is_running(self) -> bool:
        """See asyncio."""
        return asyncio._get_running_loop() is self

    def call_exception_handler(self, context: Mapping[str, Any]) -> None:
        """See asyncio: an error that nobody looked at is a violation."""
        if not self.is_dead:
            self._schedule.report(f"{self.name}: {dict(context)}")

    def _timer_handle_cancelled(self, handle: asyncio.TimerHandle) -> None:
        """See asyncio; cancelled timers are dropped when they would be due."""

    def _call(self, callback: Callable[..., object], args: tuple[Any, ...], context: Context | None) -> _Call:
        if context is None:
            context = copy_context()
        return _Call(asyncio.Handle(callback, args, self, context), context, callback, args)
