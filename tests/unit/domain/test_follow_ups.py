"""What is left to do for a run that has ended, and how it is decided."""

import pytest

from aiki_push.domain.changes import DeleteWatcher, PutMessage, SaveRun
from aiki_push.domain.follow_ups import (
    cancellation_of_children,
    children_in,
    decide_dropping,
    decide_settled,
    decide_telling,
    with_duties,
)
from aiki_push.domain.inbox import Message, RunEnding, Watcher
from aiki_push.domain.log_records import CallEnded, CallError, CallKind, CallResult
from aiki_push.domain.run import Duty, Run
from aiki_push.domain.run_states import AwaitingChildWorkflow, Cancelled, Completed, RunState
from aiki_push.domain.values import Inline, RunId
from aiki_push.domain.waits import Wait
from tests.unit.domain.run_examples import EXAMPLES, NAMESPACE, RUN_ID, later, note, run_in, saved

NOW = later(1_000)
PARENT_ID = RunId("01J8ZQ4T9VX6E4Y2M3N5P7R8SB")
WATCHER = Watcher(etag="w-1", run_id=PARENT_ID)
ENDING = RunEnding(state=Completed(), output=Inline(value=7))


@pytest.mark.parametrize(
    ("state", "is_watched", "duties"),
    [
        (EXAMPLES["completed"], False, ()),
        (EXAMPLES["completed"], True, ("tell_watchers",)),
        (EXAMPLES["failed"], True, ("tell_watchers",)),
        (EXAMPLES["cancelled"], False, ("cancel_children",)),
        (EXAMPLES["cancelled"], True, ("tell_watchers", "cancel_children")),
    ],
)
def test_a_run_that_ends_owes_its_watchers_the_news_and_where_it_was_cancelled_its_childrens_end(
    state: RunState, is_watched: bool, duties: tuple[Duty, ...]
) -> None:
    run = run_in(state, watched=is_watched)
    assert with_duties(run, NOW) == run.model_copy(update={"duties": duties, "due_at": NOW if duties else None})


def test_a_watcher_is_told_and_removed_by_the_same_changes() -> None:
    ended = run_in(Completed())
    waiting = run_in(AwaitingChildWorkflow(), waits=(Wait(kind="child", key=RUN_ID, ordinal=0),), open_child_waits=1)
    waiting = waiting.model_copy(update={"id": PARENT_ID, "inbox_seq": 2, "seen_seq": 2})

    save, put, delete = decide_telling(ended, WATCHER, waiting, ENDING, NOW)

    woken = saved(save)
    assert (woken.id, woken.state.status, woken.inbox_seq) == (PARENT_ID, "queued", 3)
    assert put == PutMessage(NAMESPACE, PARENT_ID, Message(seq=3, at=NOW, kind="child", key=RUN_ID, ending=ENDING))
    assert delete == DeleteWatcher(NAMESPACE, RUN_ID, WATCHER)


def test_a_watcher_that_is_gone_is_only_removed() -> None:
    assert decide_dropping(run_in(Completed()), WATCHER) == (DeleteWatcher(NAMESPACE, RUN_ID, WATCHER),)


def call(number: int, kind: CallKind = "child", result: CallResult | None = "created") -> CallEnded:
    run_id = RunId(f"child-{number}")
    return CallEnded(at=NOW, kind=kind, key=f"key-{number}", ordinal=0, run_id=run_id, result=result)


def test_the_children_of_a_run_are_those_it_created() -> None:
    refused = call(4, result=None).model_copy(update={"error": CallError(code="reference_conflict", detail="taken")})
    records = (note("a"), call(1), call(2, result="existing"), call(3, "cancel", "done"), refused, call(5))
    assert children_in(records) == ("child-1", "child-5")


def test_the_children_of_one_run_are_cancelled_by_one_operation_that_is_no_other_runs() -> None:
    run = run_in(Cancelled())
    other = run.model_copy(update={"id": PARENT_ID})
    assert cancellation_of_children(run) == cancellation_of_children(run.model_copy(update={"revision": 9}))
    assert cancellation_of_children(run) != cancellation_of_children(other)
    assert len(cancellation_of_children(run)) == 26


def owing(*duties: Duty, **fields: object) -> Run:
    return run_in(Cancelled(), duties=duties, due_at=NOW, **fields)


def test_a_run_that_owes_nothing_more_is_never_due_again() -> None:
    run = owing("tell_watchers", "cancel_children", advance_errors=3)
    settled = run.model_copy(update={"duties": (), "due_at": None, "advance_errors": 0})
    assert decide_settled(run, ["cancel_children", "tell_watchers"], NOW) == (SaveRun(settled),)


@pytest.mark.parametrize(
    ("looks", "delay_ms"), [(0, 1_000), (1, 2_000), (2, 4_000), (11, 2_048_000), (12, 3_600_000), (1_000_000, 3_600_000)]
)
def test_what_cannot_be_done_yet_is_looked_at_again_twice_as_late_each_time_but_within_an_hour(looks: int, delay_ms: int) -> None:
    run = owing("tell_watchers", "cancel_children", advance_errors=looks)
    left = {"duties": ("cancel_children",), "due_at": NOW + delay_ms, "advance_errors": looks + 1}
    assert decide_settled(run, ["tell_watchers"], NOW) == (SaveRun(run.model_copy(update=left)),)
    nothing_done = {**left, "duties": run.duties}
    assert decide_settled(run, [], NOW) == (SaveRun(run.model_copy(update=nothing_done)),)


def test_what_somebody_else_has_settled_is_settled() -> None:
    settled = run_in(Cancelled(), duties=(), due_at=None)
    assert decide_settled(settled, ["tell_watchers"], NOW) == ()


def test_what_somebody_else_has_put_off_is_put_off_no_further() -> None:
    put_off = owing("cancel_children").model_copy(update={"due_at": later(1_001)})
    assert decide_settled(put_off, ["tell_watchers"], NOW) == ()


def test_what_was_put_off_is_settled_all_the_same_once_it_is_done() -> None:
    put_off = owing("cancel_children").model_copy(update={"due_at": later(1_001)})
    assert saved(*decide_settled(put_off, ["cancel_children"], NOW)).due_at is None
