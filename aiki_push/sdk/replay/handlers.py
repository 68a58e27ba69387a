"""Running the handlers of tasks, outside the workflow, on the ordinary event loop or in threads."""

import asyncio
import contextvars
import inspect
import logging
import threading
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TypeAlias

from aiki_push.domain.log_records import TaskBackingOff, TaskCompleted, TaskFailed
from aiki_push.domain.values import RunId, TimestampMs
from aiki_push.sdk.calls import TaskCall
from aiki_push.sdk.replay.live_task import LiveTask
from aiki_push.sdk.task import TaskInfo, current_task

_log = logging.getLogger(__name__)

Ended: TypeAlias = TaskCompleted | TaskFailed | TaskBackingOff


@dataclass(slots=True)
class Handlers:
    """Runs the handlers of one segment on the ordinary event loop.

    `now` is the server's time. `on_outcome` hears what came of each handler, but not of a cancelled one; `on_stop` that any has stopped.
    `running` are in the order of their starts, and are cancelled in it: in that of a set, one run would not be like the next.
    """

    run_id: RunId
    now: Callable[[], TimestampMs]
    jitter: Callable[[], float]
    on_outcome: Callable[[LiveTask, Ended], None]
    on_stop: Callable[[], None]
    running: dict[LiveTask, None] = field(default_factory=dict)

    def start(self, live: LiveTask) -> None:
        """Run the call's handler, in the context variables of the branch that called it."""
        info = TaskInfo(run_id=self.run_id, task_id=live.task_id, task=live.call.name, attempt=live.attempt)
        live.call.context.run(current_task.set, info)
        live.execution = asyncio.create_task(self._execute(live), name=f"task {live.call.name}", context=live.call.context)
        live.execution.add_done_callback(lambda _: self._stopped(live))
        self.running[live] = None

    def _stopped(self, live: LiveTask) -> None:
        self.running.pop(live, None)
        self.on_stop()

    def cancel(self, live: LiveTask) -> None:
        """Cancel the handler, if it is running and can be cancelled: a thread goes on, and its outcome is ignored."""
        live.is_cancelled = True
        if live.execution is not None:
            live.execution.cancel()

    def cancel_all(self) -> None:
        """Cancel every handler that still runs."""
        for live in tuple(self.running):
            self.cancel(live)

    async def end(self, *, grace_ms: int) -> None:
        """Cancel what still runs and wait for it: a thread cannot be stopped, and its effects should not outlive the run unseen."""
        executions = [live.execution for live in self.running if live.execution is not None]
        self.cancel_all()
        if not executions:
            return
        _, stuck = await asyncio.wait(executions, timeout=grace_ms / 1_000)
        if stuck:
            names = ", ".join(sorted(execution.get_name() for execution in stuck))
            _log.warning("run %s ends while %s does not stop", self.run_id, names, extra={"aiki.run_id": self.run_id})

    async def _execute(self, live: LiveTask) -> None:
        try:
            output = live.call.encode(await _invoke(live.call))
            ended: Ended = live.completed(self.now(), output)
        except asyncio.CancelledError as error:
            if live.is_cancelled:
                raise
            ended = live.raised(self.now(), error, self.jitter())
        except (Exception, SystemExit) as error:  # noqa: BLE001 - the author's handler may raise anything
            ended = live.raised(self.now(), error, self.jitter())
        self.on_outcome(live, ended)


async def _invoke(call: TaskCall) -> object:
    result = call.invoke() if call.is_coroutine else await in_thread(call.invoke)
    return await result if inspect.isawaitable(result) else result


def in_thread(function: Callable[[], object]) -> Awaitable[object]:
    """What `function` returns or raises, called in a thread of its own with the present context variables.

    The thread is a daemon: one that is stuck never keeps the process from ending.
    """
    loop = asyncio.get_running_loop()
    future: asyncio.Future[object] = loop.create_future()
    context = contextvars.copy_context()

    def call() -> None:
        result: object = None
        error: BaseException | None = None
        try:
            result = context.run(function)
        except StopIteration:
            error = RuntimeError("the task raised StopIteration")  # a future refuses it
        except BaseException as raised:  # noqa: BLE001 - carried over to the event loop, where it is raised again
            error = raised
        if not loop.is_closed():
            loop.call_soon_threadsafe(_resolve, future, result, error)

    threading.Thread(target=call, name="aiki-push task", daemon=True).start()
    return future


def _resolve(future: asyncio.Future[object], result: object, error: BaseException | None) -> None:
    if future.done():
        return
    if error is None:
        future.set_result(result)
    else:
        future.set_exception(error)
