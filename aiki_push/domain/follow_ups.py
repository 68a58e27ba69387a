"""What is left to do for a run that has ended: tell those who watch it, and end what a cancelled run has started."""

from collections.abc import Collection, Iterable

from aiki_push.domain.changes import Change, DeleteWatcher, SaveRun
from aiki_push.domain.ids import derived_id
from aiki_push.domain.inbox import RunEnding, Watcher
from aiki_push.domain.log_records import AnyRecord, CallEnded
from aiki_push.domain.messages import News, tell
from aiki_push.domain.run import Duty, Run
from aiki_push.domain.values import RunId, TimestampMs

FIRST_LOOK_MS = 1_000
"""A child whose executor is busy obeys within a second or so."""

LONGEST_LOOK_MS = 3_600_000


def with_duties(run: Run, now: TimestampMs) -> Run:
    """The run, which has just ended, with what is to be done about that, due now."""
    owed: dict[Duty, bool] = {"tell_watchers": run.watched, "cancel_children": run.state.status == "cancelled"}
    duties = tuple(duty for duty, is_owed in owed.items() if is_owed)
    return run.model_copy(update={"duties": duties, "due_at": now if duties else None})


def decide_telling(ended: Run, watcher: Watcher, waiting: Run, ending: RunEnding, now: TimestampMs) -> tuple[Change, ...]:
    """Tell `waiting`, the watcher's run, how `ended` ended. Removing the watcher in the same transaction makes it once."""
    told = tell(waiting, (News(kind="child", key=ended.id, ending=ending),), now)
    return *told, *decide_dropping(ended, watcher)


def decide_dropping(ended: Run, watcher: Watcher) -> tuple[Change, ...]:
    """Forget a watcher that is gone, or has ended itself: nobody is left to be told."""
    return (DeleteWatcher(ended.namespace, ended.id, watcher),)


def children_in(records: Iterable[AnyRecord]) -> tuple[RunId, ...]:
    """The runs that these records of a log say were created as children. One that existed already belongs to somebody else, too."""
    return tuple(
        record.run_id
        for record in records
        if isinstance(record, CallEnded) and record.kind == "child" and record.result == "created"
    )


def cancellation_of_children(parent: Run) -> str:
    """The operation id by which the children of `parent` are cancelled: the same each time, so a repetition is recognised."""
    return derived_id("cancel_children", parent.id)


def decide_settled(run: Run, done: Collection[Duty], now: TimestampMs) -> tuple[Change, ...]:
    """Take the duties `done` off a run that has ended. For what is left it is looked at again, twice as late each time.

    Nothing where somebody else has settled the same, or has put the rest off already.
    """
    left = tuple(duty for duty in run.duties if duty not in done)
    if left == run.duties and (run.due_at is None or run.due_at > now):
        return ()
    if not left:
        return (SaveRun(run.model_copy(update={"duties": (), "due_at": None, "advance_errors": 0})),)
    delay_ms = min(FIRST_LOOK_MS * 2 ** min(run.advance_errors, 20), LONGEST_LOOK_MS)
    later = {"duties": left, "due_at": now + delay_ms, "advance_errors": run.advance_errors + 1}
    return (SaveRun(run.model_copy(update=later)),)
