"""Where a workflow's failure came from."""

from collections.abc import Iterator, Mapping

from aiki_push.domain.run_states import Cause, ChildWorkflowCause, SelfCause, TaskCause
from aiki_push.domain.values import RunId
from aiki_push.sdk.failures import ChildFailed, TaskFailed


def cause_of(error: BaseException, order: Mapping[str, int]) -> Cause:
    """The cause of `error`; of an exception group, that of its first leaf by `order` (ids of tasks and children to their place in the
    log).
    """
    first = min(leaves_of(error), key=lambda leaf: order.get(_id_of(leaf), len(order)))
    match first:
        case TaskFailed(task_id=task_id):
            return TaskCause(task_id=task_id)
        case ChildFailed(run_id=run_id):
            return ChildWorkflowCause(run_id=RunId(run_id))
        case _:
            return SelfCause()


def _id_of(error: BaseException) -> str:
    match error:
        case TaskFailed(task_id=task_id):
            return task_id
        case ChildFailed(run_id=run_id):
            return run_id
        case _:
            return ""


def leaves_of(error: BaseException) -> Iterator[BaseException]:
    """The exceptions in an exception group, at any depth; any other exception itself."""
    if isinstance(error, BaseExceptionGroup):
        for inner in error.exceptions:
            yield from leaves_of(inner)
    else:
        yield error
