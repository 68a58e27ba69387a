"""What a failed call raises in the workflow: always what the record holds, the first time as on every replay."""

from collections.abc import Mapping

from aiki_push.domain import log_records
from aiki_push.domain.errors import WorkflowError
from aiki_push.domain.log_records import RecordedError


class TaskFailed(WorkflowError):
    """A task failed for good. `error` is its last exception as data (name, message, stack, cause), `attempts` how often it was tried,
    `is_final` whether it ends the workflow's retries too.

    The exception itself is not raised: it does not exist on a replay. Look at `error.name`, or let the task return a result that says more.
    """

    def __init__(self, task: str, task_id: str, attempts: int, error: RecordedError, *, is_final: bool = False) -> None:
        super().__init__(f"task {task} failed in attempt {attempts}: {error.name}: {error.message}")
        self.task = task
        self.task_id = task_id
        self.attempts = attempts
        self.error = error
        self.is_final = is_final


class TaskInterrupted(TaskFailed):
    """The task's executions were cut off again and again, by crashes or by the end of the invocation. Make the task shorter."""


class OutcomeUnknown(TaskFailed):
    """An execution was cut off and the task says `interrupted="fail"`: its effect may or may not have taken place. Find out, then go on."""


_BY_NAME: Mapping[str, type[TaskFailed]] = {kind.__name__: kind for kind in (TaskInterrupted, OutcomeUnknown)}


def task_failure(task: str, failed: log_records.TaskFailed) -> TaskFailed:
    """The exception for a recorded failure of a task."""
    kind = _BY_NAME.get(failed.error.name, TaskFailed)
    return kind(task, failed.task_id, failed.attempt, failed.error, is_final=failed.is_final)


class RunFailed(WorkflowError):
    """The run whose output was asked for did not complete. `error` is what it failed by; look at `state` before asking for the output."""

    def __init__(self, run_id: str, status: str, error: RecordedError | None) -> None:
        super().__init__(f"run {run_id} is {status}" + (f": {error.name}: {error.message}" if error else ""))
        self.run_id = run_id
        self.status = status
        self.error = error


class ChildFailed(RunFailed):
    """The child whose output a workflow asked for did not complete. Uncaught, it is the cause of the workflow's own failure."""
