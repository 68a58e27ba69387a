"""Running the handlers of tasks, outside the workflow, on the ordinary event loop or in threads."""

import asyncio
import contextvars
import inspect
import threading
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TypeAlias

from aiki_push.domain.log_records import TaskBackingOff, TaskCompleted, TaskFailed
from aiki_push.domain.values import RunId, TimestampMs
from aiki_push.sdk.calls import TaskCall
from aiki_push.sdk.replay.live_task import LiveTask
from aiki_push.sdk.task import TaskInfo, current_task

Ended: TypeAlias = TaskCompleted | TaskFailed | TaskBackingOff


@dataclass(slots=True)
class Handlers:
    """Runs the handlers of one segment on the ordinary event loop. `now` is the server's time; `on_end` hears of each end."""

    run_id: RunId
    now: Callable[[], TimestampMs]
    jitter: Callable[[], float]
    on_end: Callable[[LiveTask, Ended], None]
    running: set[LiveTask] = field(default_factory=set)

    def start(self, live: LiveTask) -> None:
        """Run the call's handler, in the context variables of the branch that called it."""
        info = TaskInfo(run_id=self.run_id, task_id=live.task_id, task=live.call.name, attempt=live.attempt)
        live.call.context.run(current_task.set, info)
        live.execution = asyncio.create_task(self._execute(live), name=f"task {live.call.name}", context=live.call.context)
        self.running.add(live)

    def cancel(self, live: LiveTask) -> None:
        """Cancel the handler, if it is running and can be cancelled: a thread goes on, and its outcome is ignored."""
        live.is_cancelled = True
        if live.execution is not None:
            live.execution.cancel()

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
        finally:
            self.running.discard(live)
        self.on_end(live, ended)


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
