"""Telling a run something: what is put into its inbox, and when it is woken."""

import pytest

from aiki_push.domain.changes import PutMessage, PutSlot, SaveRun
from aiki_push.domain.inbox import Message, MessageKind, RunEnding
from aiki_push.domain.log_records import Tail, Transition
from aiki_push.domain.messages import News, ending_of, tell, wants_any
from aiki_push.domain.run import Run
from aiki_push.domain.run_states import (
    PARKED,
    TERMINAL,
    Cancelled,
    Completed,
    Failed,
    Queued,
    QueuedReason,
    RunState,
    SelfCause,
    Status,
)
from aiki_push.domain.values import Inline, PayloadReference, StoredValue, TimestampMs
from aiki_push.domain.waits import ANY_KEY, Wait, WaitKind, parked_state
from tests.unit.domain.run_examples import BOOM, EARLIER, EXAMPLES, NAMESPACE, RUN_ID, later, note, run_in, saved

NOW = later(1_000)
PAID = News(kind="event", key="paid", data=Inline(value=5))
ENDING = RunEnding(state=Completed(), output=Inline(value=7))


def child_ended(number: int = 1) -> News:
    return News(kind="child", key=f"child-{number}", ending=ENDING)


def wait(kind: WaitKind, key: str, deadline_ms: int | None = None) -> Wait:
    return Wait(kind=kind, key=key, ordinal=0, deadline_at=None if deadline_ms is None else later(deadline_ms))


def parked_on(*waits: Wait, **fields: object) -> Run:
    deadlines = [one.deadline_at for one in waits if one.deadline_at is not None]
    children = sum(one.kind == "child" for one in waits)
    parked = {"waits": waits, "due_at": min(deadlines, default=None), "inbox_seq": 4, "seen_seq": 4, "open_child_waits": children}
    return run_in(parked_state(waits), **{**parked, **fields})


def put(news: News, seq: int) -> PutMessage:
    message = Message(seq=seq, at=NOW, kind=news.kind, key=news.key, data=news.data, ending=news.ending)
    return PutMessage(NAMESPACE, RUN_ID, message)


def queued_with(run: Run, reason: QueuedReason, inbox_seq: int) -> SaveRun:
    """`run` woken at NOW."""
    state = Queued(reason=reason)
    record = Transition(at=NOW, origin=run.state.status, state=state, revision=6, attempts=1)
    left = {"waits": (), "seen_seq": 0, "open_child_waits": 0, "ready_at": NOW, "due_at": NOW}
    tail = Tail(position=3, records=(*EARLIER, record))
    return SaveRun(run.model_copy(update={**left, "state": state, "revision": 6, "inbox_seq": inbox_seq, "tail": tail}))


@pytest.mark.parametrize("status", [status for status in EXAMPLES if status not in PARKED | TERMINAL])
def test_a_run_that_is_not_parked_finds_its_messages_later_and_changes_in_nothing_else(status: Status) -> None:
    # A paused run keeps its waits, and must not be woken by what they wait for.
    run = run_in(EXAMPLES[status], waits=(wait("event", "paid"),), inbox_seq=4, due_at=later(5))
    assert tell(run, (PAID,), NOW) == (SaveRun(run.model_copy(update={"inbox_seq": 5})), put(PAID, 5))


@pytest.mark.parametrize(
    ("kind", "wait_kind", "reason"),
    [("event", "event", "event"), ("child", "child", "child_workflow"), ("wakeup", "sleep", "wakeup_early")],
)
def test_a_parked_run_is_woken_by_what_it_waits_for(kind: MessageKind, wait_kind: WaitKind, reason: QueuedReason) -> None:
    run = parked_on(wait("timer", "timer|0", 9_000), wait(wait_kind, "this", 8_000))
    news = News(kind=kind, key="this")
    assert tell(run, (news,), NOW) == (queued_with(run, reason, 5), put(news, 5))


@pytest.mark.parametrize(
    ("waited_for", "news"),
    [
        (wait("event", "paid"), News(kind="event", key="refunded")),
        (wait("child", "child-1"), News(kind="child", key="child-2")),
        (wait("sleep", "pause", 9_000), News(kind="wakeup", key="other")),
        (wait("sleep", "paid", 9_000), PAID),
        (wait("event", "child-1"), News(kind="child", key="child-1")),
        (wait("timer", "pause", 9_000), News(kind="wakeup", key=ANY_KEY)),
        (wait("task_retry", "paid", 9_000), PAID),
    ],
)
def test_a_parked_run_sleeps_on_where_it_waits_for_something_else(waited_for: Wait, news: News) -> None:
    run = parked_on(waited_for)
    assert tell(run, (news,), NOW) == (SaveRun(run.model_copy(update={"inbox_seq": 5})), put(news, 5))


@pytest.mark.parametrize(
    ("waited_for", "news", "reason"),
    [
        (wait("event", ANY_KEY), PAID, "event"),
        (wait("child", ANY_KEY), child_ended(), "child_workflow"),
        (wait("sleep", ANY_KEY, 9_000), News(kind="wakeup", key="pause"), "wakeup_early"),
        (wait("sleep", "pause", 9_000), News(kind="wakeup", key=ANY_KEY), "wakeup_early"),
    ],
)
def test_a_wait_that_stands_for_all_of_its_kind_wants_every_message_of_it(
    waited_for: Wait, news: News, reason: QueuedReason
) -> None:
    run = parked_on(waited_for)
    assert tell(run, (news,), NOW) == (queued_with(run, reason, 5), put(news, 5))
    assert wants_any(run, news.kind, news.key)


def test_a_wait_that_stands_for_all_of_its_kind_wants_nothing_of_another() -> None:
    run = parked_on(wait("event", ANY_KEY))
    assert not wants_any(run, "child", "child-1")
    assert saved(*tell(run, (child_ended(),), NOW)[:1]).state == run.state


def test_several_messages_are_numbered_in_their_order_and_wake_once() -> None:
    run = parked_on(wait("event", "paid"))
    news = (child_ended(), PAID, News(kind="event", key="paid"))
    assert tell(run, news, NOW) == (queued_with(run, "event", 7), put(news[0], 5), put(news[1], 6), put(news[2], 7))


def test_a_run_that_is_woken_with_a_full_tail_seals_it() -> None:
    run = parked_on(wait("event", "paid"), tail=Tail(position=3, records=(note("x" * 1_900),)))
    save, sealed, message = tell(run, (PAID,), NOW)
    assert saved(save).tail == Tail(position=4, records=())
    assert isinstance(sealed, PutSlot)
    assert (sealed.slot.position, len(sealed.slot.records), message) == (3, 2, put(PAID, 5))


def test_a_run_that_is_told_and_not_woken_never_takes_a_slot_of_its_log() -> None:
    run = run_in(EXAMPLES["running"], tail=Tail(position=3, records=(note("x" * 3_000),)))
    assert tell(run, (PAID,), NOW) == (SaveRun(run.model_copy(update={"inbox_seq": 1})), put(PAID, 1))


def children(number: int) -> tuple[Wait, ...]:
    return tuple(wait("child", f"child-{one}") for one in range(number))


@pytest.mark.parametrize(("open_waits", "window_ms"), [(2, 20), (3, 30), (99, 990), (100, 1_000), (101, 1_000), (5_000, 1_000)])
def test_the_first_of_many_ends_waits_for_the_others_for_ten_milliseconds_each_but_a_second_at_most(
    open_waits: int, window_ms: int
) -> None:
    run = parked_on(wait("child", ANY_KEY), open_child_waits=open_waits)
    told = run.model_copy(update={"inbox_seq": 5, "due_at": later(1_000 + window_ms)})
    assert tell(run, (child_ended(),), NOW) == (SaveRun(told), put(child_ended(), 5))


def test_a_window_ends_when_it_was_to_end_whatever_else_comes() -> None:
    run = parked_on(*children(5))
    first = saved(*tell(run, (child_ended(0),), NOW)[:1])
    second = saved(*tell(first, (child_ended(1),), TimestampMs(NOW + 49))[:1])
    assert (first.due_at, second.due_at, second.inbox_seq) == (NOW + 50, NOW + 50, 6)


def test_a_window_is_never_longer_than_the_time_to_the_first_deadline() -> None:
    run = parked_on(*children(5), wait("sleep", "pause", 1_020))
    assert saved(*tell(run, (child_ended(0),), NOW)[:1]).due_at == later(1_020)


def test_the_last_end_that_a_run_waits_for_wakes_it_at_once() -> None:
    run = parked_on(*children(3))
    for number in (0, 1):
        run = saved(*tell(run, (child_ended(number),), NOW)[:1])
        assert run.state.status == "awaiting_child_workflow"
    assert saved(*tell(run, (child_ended(2),), NOW)[:1]).state == Queued(reason="child_workflow")


def test_ends_told_together_wake_at_once_where_they_are_all_that_the_run_waits_for() -> None:
    run = parked_on(*children(2))
    news = (child_ended(0), child_ended(1))
    assert tell(run, news, NOW) == (queued_with(run, "child_workflow", 6), put(news[0], 5), put(news[1], 6))


@pytest.mark.parametrize("urgent", [PAID, News(kind="wakeup", key="pause")])
def test_what_is_not_the_end_of_a_child_waits_for_no_others(urgent: News) -> None:
    run = parked_on(*children(50), wait("event", "paid"), wait("sleep", "pause", 9_000))
    gathering = saved(*tell(run, (child_ended(0),), NOW)[:1])
    reason: QueuedReason = "event" if urgent == PAID else "wakeup_early"
    assert tell(gathering, (urgent,), NOW) == (queued_with(gathering, reason, 6), put(urgent, 6))


def test_an_event_that_nobody_waits_for_opens_no_window() -> None:
    run = parked_on(*children(50))
    assert saved(*tell(run, (PAID,), NOW)[:1]).due_at is None


@pytest.mark.parametrize(
    ("state", "output", "explanation"),
    [
        (Completed(), Inline(value=None), None),
        (Completed(), PayloadReference(run_id=RUN_ID, sha256="0" * 64, size=40_000), None),
        (Cancelled(), None, "no longer wanted"),
        (Cancelled(), None, None),
    ],
)
def test_an_ending_is_the_state_and_what_the_last_transition_told(
    state: Completed | Cancelled, output: StoredValue | None, explanation: str | None
) -> None:
    told = Transition(at=NOW, state=state, revision=6, attempts=1, output=output, explanation=explanation)
    assert ending_of(run_in(state), told) == RunEnding(state=state, output=output, explanation=explanation)


def test_the_ending_of_a_failed_run_says_why() -> None:
    state = Failed(cause=SelfCause())
    told = Transition(at=NOW, state=state, revision=6, attempts=1, error=BOOM)
    assert ending_of(run_in(state), told) == RunEnding(state=state, error=BOOM)


@pytest.mark.parametrize("state", [EXAMPLES[status] for status in EXAMPLES if status not in TERMINAL])
def test_a_run_that_has_not_ended_has_no_ending(state: RunState) -> None:
    with pytest.raises(ValueError, match="state"):
        ending_of(run_in(state), Transition(at=NOW, state=state, revision=6, attempts=1))
