"""Controlling runs from outside: pause, resume, cancel, wake up, requeue. Each names its operation, so that a repeat is recognised."""

from pydantic import TypeAdapter

from aiki_push.domain.values import Identifier
from aiki_push.ports.api.operation import Operation
from aiki_push.ports.api.runs import Explanation, RunIdField, RunView, SleepName


class PauseRun(Operation[RunView]):
    """Stop the run until it is resumed. What was being executed is abandoned without using an attempt; messages still arrive.

    Where the run cannot be taken from a busy executor, the answer has it running with a `directive`, which is obeyed within a second
    or so. A repeated `operation_id` is the same request. Raises NotFound, IllegalTransition (the run has ended, is stalled or paused).
    """

    operation, method, path, role = "pause_run", "POST", "/v1/runs/{run_id}/pause", "client"
    answer = TypeAdapter[RunView](RunView)

    run_id: RunIdField
    operation_id: Identifier


class ResumeRun(Operation[RunView]):
    """Let a paused run go on where it was: a delayed start and a deadline keep their time.

    A repeated `operation_id` is the same request. Raises NotFound, IllegalTransition (the run is not paused).
    """

    operation, method, path, role = "resume_run", "POST", "/v1/runs/{run_id}/resume", "client"
    answer = TypeAdapter[RunView](RunView)

    run_id: RunIdField
    operation_id: Identifier


class CancelRun(Operation[RunView]):
    """End the run, and then the runs that it started, and theirs. Whoever waits for it is told.

    Where the run cannot be taken from a busy executor, the answer has it running with a `directive`, which is obeyed within a second
    or so. A repeated `operation_id` is the same request. Raises NotFound, IllegalTransition (the run has ended).
    """

    operation, method, path, role = "cancel_run", "POST", "/v1/runs/{run_id}/cancel", "client"
    answer = TypeAdapter[RunView](RunView)

    run_id: RunIdField
    operation_id: Identifier
    explanation: Explanation | None = None


class WakeUpRun(Operation[RunView]):
    """End every `run.sleep` that the run is in now, or those with the name `sleep`.

    A repeated `operation_id` is the same request. Raises NotFound, IllegalTransition (the run has ended, is stalled, has not begun,
    waits for its next attempt, or is parked on no such sleep).
    """

    operation, method, path, role = "wake_up_run", "POST", "/v1/runs/{run_id}/wakeup", "client"
    answer = TypeAdapter[RunView](RunView)

    run_id: RunIdField
    operation_id: Identifier
    sleep: SleepName | None = None


class RequeueRun(Operation[RunView]):
    """Put a stalled run back in its queue. A repeated `operation_id` is the same request.

    Raises NotFound, IllegalTransition (the run is not stalled).
    """

    operation, method, path, role = "requeue_run", "POST", "/v1/runs/{run_id}/requeue", "client"
    answer = TypeAdapter[RunView](RunView)

    run_id: RunIdField
    operation_id: Identifier
