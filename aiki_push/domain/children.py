"""Starting a run as a child of another: it is created, or found by its reference, and its parent will be told of its end."""

from aiki_push.domain.changes import Change, CreateRun, PutWatcher, SaveRun
from aiki_push.domain.errors import ReferenceConflict
from aiki_push.domain.inbox import Watcher
from aiki_push.domain.run import Run, RunReference
from aiki_push.domain.run_transitions import is_terminal
from aiki_push.domain.starts import Start, decide_start
from aiki_push.domain.values import RunId, TimestampMs


def decide_child(start: Start, parent: RunId, now: TimestampMs, over: RunReference | None = None) -> tuple[Change, ...]:
    """Create the run, watched by its parent. `over` is what its reference names at present: a run that no longer exists."""
    changes = (_born(change, parent) for change in decide_start(start, now, over))
    return *changes, _watch(start.namespace, start.run_id, parent)


def _born(change: Change, parent: RunId) -> Change:
    if isinstance(change, CreateRun):
        return CreateRun(change.run.model_copy(update={"parent": parent, "watched": True}))
    return change


def decide_link(holder: Run, parent: RunId) -> tuple[Change, ...]:
    """Have the parent told of the end of `holder`, a run that exists; nothing where it has ended already.

    Raises ReferenceConflict where it is the parent itself.
    """
    if holder.id == parent:
        raise ReferenceConflict("the reference names the run itself, which cannot be its own child", run_id=holder.id)
    if is_terminal(holder):
        return ()
    return SaveRun(holder.model_copy(update={"watched": True})), _watch(holder.namespace, holder.id, parent)


def _watch(namespace: str, run_id: RunId, parent: RunId) -> Change:
    return PutWatcher(namespace, run_id, Watcher(run_id=parent))
