import pytest

from aiki_push.domain.advances import NeedsChange, NeedsFollowUp, NeedsOffer, NeedsRecovery, NotDue, decide_delay, need_of
from aiki_push.domain.changes import PutSlot, SaveRun
from aiki_push.domain.limits import Limits
from aiki_push.domain.log_records import Tail, Transition
from aiki_push.domain.run import Offer, Run
from aiki_push.domain.run_states import (
    AwaitingEvent,
    AwaitingRetry,
    Queued,
    QueuedReason,
    Scheduled,
    SelfCause,
    Sleeping,
    Stalled,
    Status,
)
from aiki_push.domain.values import TimestampMs
from aiki_push.domain.waits import Wait, WaitKind, parked_state
from tests.unit.domain.run_examples import (
    EARLIER,
    EXAMPLES,
    later,
    note,
    queued_run,
    run_in,
    running_run,
    saved,
)

LIMITS = Limits(max_age_ms=86_400_000)
DUE = later(60_000)
BEFORE = later(59_999)
AFTER = later(70_000)


def parked_on(*waits: Wait) -> Run:
    return run_in(parked_state(waits), waits=waits, due_at=DUE)


WAITING: dict[Status, Run] = {
    "scheduled": run_in(Scheduled(scheduled_at=DUE), due_at=DUE),
    "queued": queued_run(due_at=DUE),
    "running": running_run(due_at=DUE),
    "sleeping": parked_on(Wait(kind="sleep", key="pause", ordinal=0, deadline_at=DUE)),
    "awaiting_event": parked_on(Wait(kind="event", key="paid", ordinal=0, deadline_at=DUE)),
    "awaiting_child_workflow": parked_on(Wait(kind="child", key="child-1", ordinal=0, deadline_at=DUE)),
    "awaiting_task_retry": parked_on(Wait(kind="task_retry", key="task-1", ordinal=0, deadline_at=DUE)),
    "awaiting_retry": run_in(AwaitingRetry(cause=SelfCause(), next_attempt_at=DUE), due_at=DUE),
}
"""A run in every state that something becomes due in."""

RESTING: list[Status] = ["paused", "stalled", "completed", "failed", "cancelled"]


def test_every_status_is_waiting_for_its_time_or_at_rest() -> None:
    assert {*WAITING, *RESTING} == set(EXAMPLES)
    assert {status: run.state.status for status, run in WAITING.items()} == {status: status for status in WAITING}


@pytest.mark.parametrize("status", WAITING)
def test_a_run_needs_nothing_one_millisecond_before_it_is_due(status: Status) -> None:
    assert need_of(WAITING[status], BEFORE, LIMITS) == NotDue(DUE)


@pytest.mark.parametrize("status", WAITING)
def test_a_run_needs_something_from_exactly_the_moment_it_is_due(status: Status) -> None:
    assert not isinstance(need_of(WAITING[status], DUE, LIMITS), NotDue)
    assert not isinstance(need_of(WAITING[status], AFTER, LIMITS), NotDue)


@pytest.mark.parametrize("status", EXAMPLES)
def test_a_run_without_a_due_time_never_needs_anything_by_itself(status: Status) -> None:
    assert need_of(run_in(EXAMPLES[status]), AFTER, LIMITS) == NotDue(None)


@pytest.mark.parametrize("status", RESTING)
def test_a_run_at_rest_needs_nothing_even_if_it_is_due(status: Status) -> None:
    assert need_of(run_in(EXAMPLES[status], due_at=DUE), AFTER, LIMITS) == NotDue(None)


def queued_from(run: Run, reason: QueuedReason, attempts: int = 1) -> NeedsChange:
    """`run`, which waited at revision 5 for DUE, queued at AFTER."""
    state = Queued(reason=reason)
    record = Transition(at=AFTER, origin=run.state.status, state=state, revision=6, attempts=attempts)
    left = {"waits": (), "ready_at": DUE, "due_at": AFTER, "tail": Tail(position=3, records=(*EARLIER, record))}
    return NeedsChange((SaveRun(run.model_copy(update={**left, "state": state, "revision": 6, "attempts": attempts})),))


def test_a_scheduled_run_becomes_ready() -> None:
    assert need_of(WAITING["scheduled"], AFTER, LIMITS) == queued_from(WAITING["scheduled"], "new")


def test_a_run_that_backed_off_becomes_ready_with_one_attempt_more() -> None:
    run = WAITING["awaiting_retry"].model_copy(update={"attempts": 2})
    assert need_of(run, AFTER, LIMITS) == queued_from(run, "retry", attempts=3)


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        ("sleep", "wakeup"),
        ("timer", "wakeup"),
        ("event", "event_wait_timeout"),
        ("child", "child_workflow_wait_timeout"),
        ("task_retry", "task_retry"),
    ],
)
def test_a_parked_run_wakes_for_the_kind_of_wait_whose_deadline_passed_first(kind: WaitKind, reason: QueuedReason) -> None:
    run = parked_on(
        Wait(kind="event", key="refunded", ordinal=0),
        Wait(kind="sleep" if kind != "sleep" else "event", key="long", ordinal=0, deadline_at=later(60_001)),
        Wait(kind=kind, key="this", ordinal=0, deadline_at=DUE),
    )
    assert need_of(run, AFTER, LIMITS) == queued_from(run, reason)


def test_a_run_parked_on_two_waits_with_the_same_deadline_wakes_for_the_one_that_named_its_state() -> None:
    event = Wait(kind="event", key="paid", ordinal=0, deadline_at=DUE)
    sleep = Wait(kind="sleep", key="pause", ordinal=0, deadline_at=DUE)
    assert parked_on(event, sleep).state == AwaitingEvent(timeout_at=DUE)
    assert need_of(parked_on(event, sleep), AFTER, LIMITS) == queued_from(parked_on(event, sleep), "event_wait_timeout")
    assert parked_on(sleep, event).state == Sleeping(wakeup_at=DUE)
    assert need_of(parked_on(sleep, event), AFTER, LIMITS) == queued_from(parked_on(sleep, event), "wakeup")


HALF_A_DAY = 43_200_000


@pytest.mark.parametrize(
    ("now", "ready_at"),
    [
        (DUE, DUE),
        (TimestampMs(DUE + HALF_A_DAY), DUE),
        (TimestampMs(DUE + HALF_A_DAY + 1), TimestampMs(DUE + 1)),
        (TimestampMs(DUE + 9 * HALF_A_DAY), TimestampMs(DUE + 8 * HALF_A_DAY)),
    ],
)
@pytest.mark.parametrize("status", [status for status in WAITING if status not in ("queued", "running")])
def test_a_run_is_ready_since_its_time_however_late_that_is_seen_but_no_more_than_half_the_age_that_stalls_it(
    status: Status, now: TimestampMs, ready_at: TimestampMs
) -> None:
    need = need_of(WAITING[status], now, LIMITS)

    assert isinstance(need, NeedsChange)
    assert (saved(*need.changes).ready_at, saved(*need.changes).due_at) == (ready_at, now)


FAR = Wait(kind="sleep", key="pause", ordinal=0, deadline_at=later(90_000))
CHILD = Wait(kind="child", key="child-1", ordinal=0)


@pytest.mark.parametrize("waits", [(CHILD,), (CHILD, FAR), (FAR, CHILD)])
def test_a_run_that_is_due_before_every_deadline_wakes_for_ends_of_children_and_is_ready_since_then(
    waits: tuple[Wait, ...],
) -> None:
    assert need_of(parked_on(*waits), BEFORE, LIMITS) == NotDue(DUE)
    assert need_of(parked_on(*waits), AFTER, LIMITS) == queued_from(parked_on(*waits), "child_workflow")


def test_a_deadline_at_the_end_of_a_window_is_what_wakes_the_run() -> None:
    run = parked_on(CHILD, FAR.model_copy(update={"deadline_at": DUE}))
    assert need_of(run, AFTER, LIMITS) == queued_from(run, "wakeup")


@pytest.mark.parametrize(
    ("deadline_ms", "reason", "ready_ms"),
    [(69_999, "wakeup", 69_999), (75_000, "wakeup", 75_000), (75_001, "child_workflow", 75_000)],
)
def test_a_run_whose_advance_failed_at_the_end_of_a_window_still_wakes_for_what_came_first(
    deadline_ms: int, reason: QueuedReason, ready_ms: int
) -> None:
    run = parked_on(CHILD, FAR.model_copy(update={"deadline_at": later(deadline_ms)}))
    delayed = saved(*decide_delay(run, AFTER))
    assert delayed.due_at == later(75_000)

    need = need_of(delayed, later(80_000), LIMITS)

    assert isinstance(need, NeedsChange)
    woken = saved(*need.changes)
    assert (woken.state, woken.ready_at) == (Queued(reason=reason), later(ready_ms))


@pytest.mark.parametrize("status", ["completed", "failed", "cancelled"])
def test_a_run_that_has_ended_needs_its_follow_up_as_long_as_duties_are_left(status: Status) -> None:
    owing = run_in(EXAMPLES[status], duties=("tell_watchers",), due_at=DUE)
    assert need_of(owing, BEFORE, LIMITS) == NotDue(DUE)
    assert need_of(owing, DUE, LIMITS) == NeedsFollowUp()
    assert need_of(owing.model_copy(update={"duties": ()}), DUE, LIMITS) == NotDue(None)


@pytest.mark.parametrize("status", ["scheduled", "awaiting_event", "awaiting_retry"])
def test_a_run_that_moves_on_with_a_full_tail_seals_it(status: Status) -> None:
    run = WAITING[status].model_copy(update={"tail": Tail(position=3, records=(note("x" * 1_900),))})

    need = need_of(run, AFTER, LIMITS)

    assert isinstance(need, NeedsChange)
    save, put = need.changes
    assert saved(save).tail == Tail(position=4, records=())
    assert isinstance(put, PutSlot)
    assert (put.slot.position, len(put.slot.records), put.slot.revision) == (3, 2, 6)


def test_a_running_run_whose_claim_expired_needs_recovery() -> None:
    assert need_of(WAITING["running"], AFTER, LIMITS) == NeedsRecovery()


READY_AT = later(1_000)
TOO_OLD = TimestampMs(READY_AT + 86_400_000)


@pytest.mark.parametrize("now", [DUE, AFTER, TimestampMs(TOO_OLD - 1)])
def test_a_queued_run_needs_an_offer_until_it_is_a_day_old(now: TimestampMs) -> None:
    assert need_of(queued_run(ready_at=READY_AT, due_at=DUE), now, LIMITS) == NeedsOffer()


def test_a_queued_run_without_a_ready_time_is_not_old() -> None:
    assert need_of(queued_run(ready_at=None, due_at=DUE), TOO_OLD, LIMITS) == NeedsOffer()


def test_a_queued_run_that_is_not_due_does_not_stall_however_old_it_is() -> None:
    run = queued_run(ready_at=READY_AT, due_at=TimestampMs(TOO_OLD + 2))
    assert need_of(run, TimestampMs(TOO_OLD + 1), LIMITS) == NotDue(TimestampMs(TOO_OLD + 2))


@pytest.mark.parametrize(
    ("offer", "told"),
    [
        (Offer(), "after 0 offers"),
        (Offer(attempts=290), "after 290 offers"),
        (Offer(attempts=290, last_error="503 from orders"), "after 290 offers; the last offer failed: 503 from orders"),
    ],
)
@pytest.mark.parametrize("now", [TOO_OLD, TimestampMs(TOO_OLD + 5)])
def test_a_queued_run_that_is_a_day_old_stalls_and_says_what_was_tried(offer: Offer, told: str, now: TimestampMs) -> None:
    run = queued_run(ready_at=READY_AT, due_at=DUE, offer=offer, advance_errors=2)
    state = Stalled(reason="undelivered")
    explanation = f"nobody claimed the run within 86400000 ms of being ready, {told}"
    record = Transition(at=now, origin="queued", state=state, revision=6, attempts=1, explanation=explanation)
    left = {"offer": Offer(), "ready_at": None, "due_at": None, "advance_errors": 0}
    tail = Tail(position=3, records=(*EARLIER, record))

    assert need_of(run, now, LIMITS) == NeedsChange(
        (SaveRun(run.model_copy(update={**left, "state": state, "revision": 6, "tail": tail})),)
    )


@pytest.mark.parametrize(
    ("advance_errors", "delay_ms"),
    [
        (0, 5_000),
        (1, 10_000),
        (2, 20_000),
        (9, 2_560_000),
        (10, 3_600_000),
        (20, 3_600_000),
        (1_000_000, 3_600_000),
    ],
)
@pytest.mark.parametrize("status", WAITING)
def test_a_failed_advance_is_tried_again_twice_as_late_each_time_but_within_an_hour(
    status: Status, advance_errors: int, delay_ms: int
) -> None:
    run = WAITING[status].model_copy(update={"advance_errors": advance_errors})
    due_at = TimestampMs(AFTER + delay_ms)

    assert decide_delay(run, AFTER) == (SaveRun(run.model_copy(update={"due_at": due_at, "advance_errors": advance_errors + 1})),)


def test_a_run_that_moves_on_forgets_that_its_advance_failed() -> None:
    run = WAITING["sleeping"].model_copy(update={"advance_errors": 3})
    need = need_of(run, AFTER, LIMITS)
    assert isinstance(need, NeedsChange)
    assert saved(*need.changes).advance_errors == 0
