"""Where a workflow's failure came from."""

from collections.abc import Iterator, Mapping

from aiki_push.domain.run_states import SelfCause, TaskCause
from aiki_push.sdk.failures import TaskFailed


def cause_of(error: BaseException, order: Mapping[str, int]) -> TaskCause | SelfCause:
    """The cause of `error`; of an exception group, that of its first leaf by `order` (task ids to their place in the log)."""
    first = min(
        leaves_of(error), key=lambda leaf: order.get(leaf.task_id, len(order)) if isinstance(leaf, TaskFailed) else len(order)
    )
    return TaskCause(task_id=first.task_id) if isinstance(first, TaskFailed) else SelfCause()


def leaves_of(error: BaseException) -> Iterator[BaseException]:
    """The exceptions in an exception group, at any depth; any other exception itself."""
    if isinstance(error, BaseExceptionGroup):
        for inner in error.exceptions:
            yield from leaves_of(inner)
    else:
        yield error
