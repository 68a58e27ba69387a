"""The event loop of a workflow: it makes the calls that are ready, in one order, and knows nothing of the outside world."""

import asyncio
import sys
from collections import deque
from collections.abc import AsyncGenerator, Callable, Coroutine, Generator, Iterator, Mapping
from contextlib import contextmanager
from contextvars import Context, copy_context
from threading import get_ident
from typing import Any, TypeVar, TypeVarTuple, cast

from aiki_push.domain.errors import NotDurable
from aiki_push.sdk.replay.branches import Branch, BranchBody, stand
from aiki_push.sdk.replay.dropping import close_branch, close_generator
from aiki_push.sdk.replay.lineage import Lineage
from aiki_push.sdk.replay.ready_calls import ReadyCall
from aiki_push.sdk.replay.stable_futures import StableFuture, check_caller_of_create_future, check_caller_of_create_task
from aiki_push.sdk.replay.timers import Clock

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

MAX_CALLS_A_STEP = 100_000


class WorkflowLoop(Clock):
    """A deterministic event loop, stepped from a plain callback of the ordinary loop, in the thread that made it."""

    unhandled: list[BaseException]
    """What branches and plain callbacks raised and nobody looked at before Python freed it."""

    def __init__(self) -> None:
        super().__init__()
        self.unhandled = []
        self._ready: deque[ReadyCall] = deque()
        self._branches: dict[Branch[Any], ReadyCall] = {}  # those without an end, each with the call that steps its task
        self._generators_left: list[AsyncGenerator[Any, Any]] = []
        self._main = Lineage("0")
        self._created = 0
        self._thread = get_ident()
        self._empty_context = Context()

    # What the executor does with it.

    def start(self, coroutine: Coroutine[Any, Any, T], *, context: Context | None = None) -> asyncio.Task[T]:
        """The task of the main branch, `0`; it begins in the next step."""
        return self._begin(coroutine, self._main, None, context)

    def run_until_idle(self) -> None:
        """Make every ready call until none is left. After `MAX_CALLS_A_STEP` that is a violation, and the rest is left undone."""
        with self._running():
            for _ in range(MAX_CALLS_A_STEP):
                if not self._ready:
                    return
                self._report(self._ready.popleft().make())
        self.violate(
            f"The workflow keeps the loop busy: {MAX_CALLS_A_STEP} calls in one step, and it still waits for nothing durable. "
            f"Look for a loop around an await that never waits, such as asyncio.sleep(0).\n{self.where_branches_stand()}"
        )

    def where_branches_stand(self) -> str:
        """A line for each branch without an end, in creation order: its name, and the innermost user code it waits in."""
        return "\n".join(f"branch {branch.lineage.name}: {stand(branch.get_coro())}" for branch in self._branches)

    def drop(self) -> None:
        """Close every branch, the youngest first, then end its task. Nothing done from now on has an effect or is reported."""
        self.dropping = True
        with self._running():
            for branch in reversed(list(self._branches)):
                self._close(branch)
            for branch, step in list(self._branches.items()):
                branch.body.finish()
                step.make()
        self._branches.clear()
        self._open_timers.clear()
        self._in_order = None
        self._ready.clear()

    # What asyncio and user code call.

    def call_soon(self, callback: Callable[[*Ts], object], *args: *Ts, context: Context | None = None) -> asyncio.Handle:
        """Queue a call for this step, or for the next one if none runs."""
        if get_ident() != self._thread:
            self.refuse("A future or callback of another thread")
        if context is None:
            context = copy_context()
        handle = asyncio.Handle(callback, args, self, context)
        self._ready.append(ReadyCall(handle, context, callback, args))
        return handle

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
        eager_start: bool | None = None,  # noqa: ARG002 - an argument of asyncio's interface; branches begin in creation order
    ) -> asyncio.Task[T]:
        """A new branch, child of the one that runs now. While the workflow is dropped: a task that never begins."""
        if not asyncio.iscoroutine(coro):
            raise TypeError(f"a coroutine was expected, got {coro!r}")
        try:
            check_caller_of_create_task(self, sys._getframe(1))
        except NotDurable:
            coro.close()
            raise
        task = self._begin(coro, self.lineage.next_child(), name, context)
        if self.dropping:
            coro.close()
        return task

    def is_running(self) -> bool:
        """Whether a step runs in this thread."""
        return asyncio._get_running_loop() is self

    def call_exception_handler(self, context: Mapping[str, Any]) -> None:
        """Keep the error of a task or future that Python freed before anybody looked at it."""
        self._report(context.get("exception"))

    # What only this loop does.

    @property
    def lineage(self) -> Lineage:
        """The branch that runs now; plain callbacks count as the main one."""
        current = asyncio.current_task(self)
        return current.lineage if isinstance(current, Branch) else self._main

    def _next_number(self) -> int:
        self._created += 1
        return self._created

    def _begin(self, coroutine: Coroutine[Any, Any, T], lineage: Lineage, name: str | None, context: Context | None) -> Branch[T]:
        body = BranchBody(coroutine, self)
        branch: Branch[T] = Branch(body, loop=self, number=self._next_number(), lineage=lineage, name=name, context=context)
        self._branches[branch] = self._ready[-1]  # a new task queues the call that steps it
        branch.add_done_callback(self._forget, context=self._empty_context)
        return branch

    def _forget(self, branch: asyncio.Task[Any]) -> None:
        del self._branches[cast(Branch[Any], branch)]

    @contextmanager
    def _running(self) -> Iterator[None]:
        """Be the running loop, in place of an ordinary one around it, whose async generators are none of ours either."""
        outer_loop, outer_hooks = asyncio._get_running_loop(), sys.get_asyncgen_hooks()
        asyncio._set_running_loop(self)
        sys.set_asyncgen_hooks(firstiter=None, finalizer=self._generator_left)
        try:
            yield
        finally:
            sys.set_asyncgen_hooks(*outer_hooks)
            asyncio._set_running_loop(outer_loop)

    def _close(self, branch: Branch[Any]) -> None:
        close_branch(branch, self._branches[branch].make)
        while self._generators_left:
            cleanup = self._begin(close_generator(self._generators_left.pop(0)), self._main.next_child(), None, None)
            self._branches[cleanup].make()
            close_branch(cleanup, self._branches[cleanup].make)

    def _report(self, error: object) -> None:
        if isinstance(error, BaseException) and not self.dropping:
            self.unhandled.append(error)

    def _generator_left(self, generator: AsyncGenerator[Any, Any]) -> None:
        """Python is about to free an async generator that has not ended; any thread may do that, at any time."""
        if not self.dropping:
            name = getattr(generator, "__qualname__", repr(generator))
            self.violate(
                f"The async generator {name} was left before its end, so its clean-up would run whenever Python frees it. "
                "Use it in `async with contextlib.aclosing(...)`."
            )
        else:
            self._generators_left.append(generator)
