"""The event loop of a workflow: it runs what is ready, in one order, and knows nothing of the outside world."""

import asyncio
import sys
from collections import deque
from collections.abc import AsyncGenerator, Callable, Coroutine, Generator, Iterator, Mapping
from contextlib import contextmanager
from contextvars import Context, copy_context
from functools import partial
from operator import attrgetter
from threading import get_ident
from typing import Any, NamedTuple, TypeVar, TypeVarTuple

from aiki_push.domain.errors import NotDurable
from aiki_push.domain.values import TimestampMs
from aiki_push.sdk.replay.branches import Branch, BranchBody, Lineage, end, stand
from aiki_push.sdk.replay.outside_world import OutsideWorld
from aiki_push.sdk.replay.stable_futures import StableFuture, check_caller_of_create_future, check_caller_of_create_task
from aiki_push.sdk.replay.timers import NEVER, DurableTimer, up_to_ms

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

MAX_CALLS_A_STEP = 100_000


class ReadyCall(NamedTuple):
    """A call to make in this step, unless its handle is cancelled."""

    handle: asyncio.Handle
    context: Context
    callback: Callable[..., object]
    args: tuple[Any, ...]


class WorkflowLoop(OutsideWorld):
    """A deterministic event loop that is stepped from outside, by a plain callback of the ordinary loop, in the thread that made it."""

    unhandled: list[BaseException]
    """What background branches and plain callbacks raised and nobody looked at, in the order in which Python noticed."""

    def __init__(self) -> None:
        super().__init__()
        self.unhandled = []
        self._ready: deque[ReadyCall] = deque()
        self._open_timers: dict[int, DurableTimer] = {}
        self._branches: dict[Branch[Any], ReadyCall] = {}  # those without an end, each with the call that steps its task
        self._main = Lineage("0")
        self._created = 0
        self._now_at = TimestampMs(0)
        self._thread = get_ident()
        self._empty_context = Context()

    # ---- driven by the executor

    def start(self, coroutine: Coroutine[Any, Any, T], *, context: Context | None = None) -> asyncio.Task[T]:
        """The task of the main branch, `0`; it begins in the next step."""
        return self._begin(coroutine, self._main, None, context)

    def run_until_idle(self) -> None:
        """Make every ready call until none is left. More than `MAX_CALLS_A_STEP` are a violation; the rest is then left undone."""
        with self._entered():
            for _ in range(MAX_CALLS_A_STEP):
                if not self._ready:
                    return
                self._make(self._ready.popleft())
        self.violate(
            f"The workflow keeps the loop busy: {MAX_CALLS_A_STEP} calls in one step, and still not waiting for anything durable. "
            f"Look for a loop around asyncio.sleep(0) or an await that never waits.\n{self.where_branches_stand()}"
        )

    def set_time_ms(self, at: TimestampMs) -> None:
        """Move the workflow's clock on to `at`; it never goes back."""
        self._now_at = max(self._now_at, at)

    @property
    def timers(self) -> list[DurableTimer]:
        """The open timers by deadline, then by creation."""
        return sorted(self._open_timers.values(), key=attrgetter("deadline_at"))

    @property
    def branch(self) -> str:
        """Name of the branch that runs now; plain callbacks count as the main branch."""
        return self._lineage.name

    def where_branches_stand(self) -> str:
        """A line for each branch without an end, in creation order: its name, and the innermost user code it waits in."""
        return "\n".join(f"branch {branch.lineage.name}: {stand(branch.get_coro())}" for branch in self._branches)

    def drop(self) -> None:
        """Close every branch, the youngest first, then end its task. Nothing done from now on has an effect, is recorded or is reported."""
        self.dropping = True
        youngest_first = list(reversed(self._branches.items()))
        with self._entered():
            for branch, step in youngest_first:
                branch.body.end_at_next_step()
                self._make(step)
            for _, step in youngest_first:
                self._make(step)
        self._branches.clear()
        self._open_timers.clear()
        self._ready.clear()

    # ---- called by asyncio and by user code

    def call_soon(self, callback: Callable[[*Ts], object], *args: *Ts, context: Context | None = None) -> asyncio.Handle:
        """Queue a call for this step, or the next one if none runs."""
        if get_ident() != self._thread and not self.dropping:
            self.refuse("A future or callback from another thread")
        if context is None:
            context = copy_context()
        handle = asyncio.Handle(callback, args, self, context)
        if not self.dropping:
            self._ready.append(ReadyCall(handle, context, callback, args))
        return handle

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

    def time(self) -> float:
        """The workflow's clock in seconds since 1970: the time of the latest thing it was given, the same on every replay."""
        return self._now_at / 1000

    def create_future(self) -> asyncio.Future[Any]:
        """A future that hashes by its creation number."""
        check_caller_of_create_future(self, sys._getframe(1))
        return StableFuture(loop=self, number=self._next_number())

    def create_task(
        self,
        coro: Generator[Any, None, T] | Coroutine[Any, Any, T],
        *,
        name: str | None = None,
        context: Context | None = None,
        eager_start: bool | None = None,  # noqa: ARG002 - part of the interface from Python 3.14; branches always begin in creation order
    ) -> asyncio.Task[T]:
        """A new branch, child of the one that runs. While the workflow is dropped: a task that never begins."""
        if not asyncio.iscoroutine(coro):
            raise TypeError(f"a coroutine was expected, got {coro!r}")
        try:
            check_caller_of_create_task(self, sys._getframe(1))
        except NotDurable:
            coro.close()
            raise
        return self._begin(coro, self._lineage.next_child(), name, context)

    def call_exception_handler(self, context: Mapping[str, Any]) -> None:
        """Keep the error of a task or future that was freed before anybody looked at it."""
        self._report(context.get("exception"))

    def get_debug(self) -> bool:
        """Always False: the debug mode of asyncio measures and prints."""
        return False

    def is_running(self) -> bool:
        """Whether a step runs in this thread."""
        return asyncio._get_running_loop() is self

    def is_closed(self) -> bool:
        """Whether the workflow was dropped."""
        return self.dropping

    # ---- inside

    @property
    def _lineage(self) -> Lineage:
        current = asyncio.current_task(self)
        return current.lineage if isinstance(current, Branch) else self._main

    def _next_number(self) -> int:
        self._created += 1
        return self._created

    def _begin(
        self, coroutine: Coroutine[Any, Any, T], lineage: Lineage, name: str | None, context: Context | None
    ) -> asyncio.Task[T]:
        body = BranchBody(coroutine, self)
        branch: Branch[T] = Branch(body, loop=self, number=self._next_number(), lineage=lineage, name=name, context=context)
        if self.dropping:
            coroutine.close()
        else:
            self._branches[branch] = self._ready[-1]  # a new task queues the call that steps it
            branch.add_done_callback(self._forget, context=self._empty_context)
        return branch

    def _forget(self, branch: asyncio.Task[Any]) -> None:
        self._branches.pop(branch)

    def _call_at(self, deadline: int, call: Callable[[], object], context: Context | None) -> asyncio.TimerHandle:
        deadline_at = TimestampMs(max(deadline, self._now_at))
        lineage, waits = self._lineage, deadline_at > self._now_at
        timer = DurableTimer(
            self,
            partial(self.call_soon, call, context=copy_context() if context is None else context),
            self._open_timers,
            number=self._next_number(),
            branch=lineage.name,
            ordinal=lineage.next_timer() if waits else 0,
            deadline_at=deadline_at,
        )
        if deadline_at < NEVER and not self.dropping:
            self._open_timers[timer.number] = timer
        if not waits:
            timer.fire()
        return timer

    def _make(self, call: ReadyCall) -> None:
        if call.handle.cancelled():
            return
        try:
            call.context.run(call.callback, *call.args)
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # noqa: BLE001 - a plain callback of the user may raise anything; tasks keep their own errors
            self._report(error)

    def _report(self, error: BaseException | None) -> None:
        if error is not None and not self.dropping:
            self.unhandled.append(error)

    @contextmanager
    def _entered(self) -> Iterator[None]:
        """In this loop in place of the ordinary one, which may be running around us."""
        outer_loop, outer_hooks = asyncio._get_running_loop(), sys.get_asyncgen_hooks()
        asyncio._set_running_loop(self)
        sys.set_asyncgen_hooks(firstiter=None, finalizer=self._generator_left)
        try:
            yield
        finally:
            sys.set_asyncgen_hooks(*outer_hooks)
            asyncio._set_running_loop(outer_loop)

    def _generator_left(self, generator: AsyncGenerator[Any, Any]) -> None:
        """Python found an async generator that nobody can continue. Its clean-up runs only where a branch is being closed."""
        if not self.dropping:
            self.violate(
                f"The async generator {generator.__qualname__} was left before its end, so its clean-up would run whenever Python "
                "frees it. Use it in `async with contextlib.aclosing(...)`."
            )
        elif self.is_running():
            end(generator.aclose())
