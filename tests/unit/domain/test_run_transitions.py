from typing import get_args

import pytest

from aiki_push.domain.errors import IllegalTransition
from aiki_push.domain.limits import Limits
from aiki_push.domain.log_records import Tail, Transition
from aiki_push.domain.run import Directive, LastWrite, Offer, Run, RunOptions
from aiki_push.domain.run_states import (
    PARKED,
    STATUSES,
    TERMINAL,
    Completed,
    Failed,
    Queued,
    QueuedReason,
    Running,
    RunState,
    Scheduled,
    SelfCause,
    Stalled,
    StalledReason,
    Status,
)
from aiki_push.domain.run_transitions import (
    Told,
    check_transition,
    enter,
    is_terminal,
    queue,
    ready_since,
)
from aiki_push.domain.values import Inline, TimestampMs
from aiki_push.domain.waits import Wait
from tests.unit.domain.run_examples import (
    BOOM,
    CREATED_AT,
    EARLIER,
    EXAMPLES,
    INPUT_HASH,
    NAMESPACE,
    RUN_ID,
    later,
    queued_run,
    run_in,
    running_run,
)

WAKE = (
    "queued(wakeup) queued(wakeup_early) queued(event) queued(event_wait_timeout) queued(child_workflow) "
    "queued(child_workflow_wait_timeout) queued(task_retry) paused cancelled"
)

TABLE: dict[Status, str] = {
    "scheduled": "queued(new) paused cancelled",
    "queued": "running stalled(undelivered) paused cancelled",
    "running": (
        "completed failed awaiting_retry sleeping awaiting_event awaiting_child_workflow awaiting_task_retry "
        "queued(recovery) queued(yield) queued(released) "
        "stalled(diverged) stalled(cannot_restore) stalled(unknown_record) stalled(corrupt_log) stalled(crash_loop) "
        "paused cancelled"
    ),
    "sleeping": WAKE,
    "awaiting_event": WAKE,
    "awaiting_child_workflow": WAKE,
    "awaiting_task_retry": WAKE,
    "awaiting_retry": "queued(retry) paused cancelled",
    "paused": (
        "queued(resumption) queued(new) queued(retry) scheduled(new) awaiting_retry "
        "sleeping awaiting_event awaiting_child_workflow awaiting_task_retry cancelled"
    ),
    "stalled": "queued(redelivery) cancelled",
    "completed": "",
    "failed": "",
    "cancelled": "",
}
"""Every edge there is, copied by hand from the documented table of transitions. Whatever is not here must be refused."""

TARGETS: tuple[RunState, ...] = (
    *(state for status, state in EXAMPLES.items() if status not in ("queued", "stalled")),
    *(Queued(reason=reason) for reason in get_args(QueuedReason)),
    *(Stalled(reason=reason) for reason in get_args(StalledReason)),
)
"""Every status with every reason it can have."""


def label(state: RunState) -> str:
    return f"{state.status}({state.reason})" if isinstance(state, Scheduled | Queued | Stalled) else state.status


MATRIX = [
    pytest.param(origin, target, id=f"{origin.status}-{label(target)}") for origin in EXAMPLES.values() for target in TARGETS
]


def test_every_status_has_an_example_and_a_row_of_the_table() -> None:
    assert set(STATUSES) == set(EXAMPLES) == set(TABLE)
    assert {status: example.status for status, example in EXAMPLES.items()} == {status: status for status in STATUSES}
    assert {member.model_fields["status"].default for member in get_args(RunState)} == set(STATUSES)


def test_every_status_and_reason_is_entered_from_somewhere() -> None:
    assert {edge for row in TABLE.values() for edge in row.split()} == {label(target) for target in TARGETS}


def test_the_matrix_has_every_status_against_every_status_and_reason() -> None:
    assert len(MATRIX) == 13 * (11 + 14 + 6)


@pytest.mark.parametrize(("origin", "target"), MATRIX)
def test_a_transition_is_legal_exactly_if_the_table_has_it(origin: RunState, target: RunState) -> None:
    row = TABLE[origin.status].split()
    run = run_in(origin)

    if label(target) in row:
        check_transition(run, target)
        return

    with pytest.raises(IllegalTransition) as refused:
        check_transition(run, target)

    named = {"run_id": RUN_ID, "from_status": origin.status, "to_status": target.status}
    has_other_reasons = any(edge.startswith(f"{target.status}(") for edge in row)
    if has_other_reasons and isinstance(target, Scheduled | Queued | Stalled):
        assert refused.value.fields == {**named, "reason": target.reason}
        assert refused.value.detail == (
            f"run {RUN_ID} is {origin.status}; it cannot become {target.status} for the reason {target.reason}"
        )
    else:
        assert refused.value.fields == named
        assert refused.value.detail == f"run {RUN_ID} is {origin.status}; it cannot become {target.status}"


@pytest.mark.parametrize("status", STATUSES)
def test_a_run_is_terminal_once_it_completed_failed_or_was_cancelled(status: Status) -> None:
    assert is_terminal(run_in(EXAMPLES[status])) == (status in ("completed", "failed", "cancelled"))
    assert (status in TERMINAL) == (TABLE[status] == "")


def test_parked_are_the_four_states_that_wait_for_something() -> None:
    assert {"sleeping", "awaiting_event", "awaiting_child_workflow", "awaiting_task_retry"} == PARKED


FULL_HEADER = running_run(
    attempts=3,
    last_write=LastWrite(checkpoint_id="checkpoint-1", claim_id="claim-z"),
    inbox_seq=7,
    waits=(Wait(kind="event", key="paid", ordinal=0),),
    seen_seq=6,
    open_child_waits=1,
    watched=True,
    paused_from=Queued(reason="new"),
    directive=Directive(action="pause", operation_id="operation-2"),
    duties=("tell_watchers",),
    recoveries=2,
    advance_errors=4,
    offer=Offer(attempts=6, last_error="refused"),
    operations=("operation-1",),
    ready_at=later(1_000),
)


def test_a_transition_clears_what_belongs_to_the_state_it_leaves_and_keeps_what_belongs_to_the_run() -> None:
    entered, record = enter(FULL_HEADER, Completed(), later(4_000), Told(executor="worker-a", output=Inline(value=[1])))

    assert entered == Run(
        etag="e-1",
        namespace=NAMESPACE,
        id=RUN_ID,
        workflow="order",
        version="v1",
        input_hash=INPUT_HASH,
        options=RunOptions(pool="large", priority=2),
        created_at=CREATED_AT,
        revision=6,
        state=Completed(),
        attempts=3,
        tail=Tail(position=3, records=EARLIER),
        claim=None,
        last_write=None,
        inbox_seq=7,
        waits=(),
        seen_seq=0,
        open_child_waits=0,
        watched=True,
        paused_from=None,
        directive=None,
        duties=(),
        recoveries=2,
        advance_errors=0,
        offer=Offer(),
        operations=("operation-1",),
        ready_at=None,
        due_at=None,
    )
    assert record == Transition(
        at=later(4_000),
        origin="running",
        state=Completed(),
        revision=6,
        attempts=3,
        executor="worker-a",
        output=Inline(value=[1]),
    )


def test_a_transition_records_the_error_and_the_explanation_it_is_told() -> None:
    state = Failed(cause=SelfCause())
    _, record = enter(running_run(), state, later(1), Told(error=BOOM, explanation="gave up"))
    assert record == Transition(
        at=later(1), origin="running", state=state, revision=6, attempts=1, error=BOOM, explanation="gave up"
    )


def test_an_illegal_state_is_not_entered() -> None:
    with pytest.raises(IllegalTransition, match=f"run {RUN_ID} is queued; it cannot become completed"):
        enter(queued_run(), Completed(), later(1))


def test_a_queued_run_is_ready_and_due_from_the_moment_it_was_queued() -> None:
    queued, record = queue(running_run(), Queued(reason="yield"), later(4_000), Told(executor="worker-a"))

    entered, same_record = enter(running_run(), Queued(reason="yield"), later(4_000), Told(executor="worker-a"))
    assert queued == entered.model_copy(update={"ready_at": later(4_000), "due_at": later(4_000)})
    assert record == same_record


def test_entering_a_state_leaves_the_run_as_it_was() -> None:
    run = running_run()
    enter(run, Completed(), later(1))
    assert run == running_run()


def test_a_claimed_run_has_left_the_queue() -> None:
    entered, _ = enter(queued_run(), Running(), later(2_000))
    assert (entered.ready_at, entered.due_at) == (None, None)


@pytest.mark.parametrize(("time", "since"), [(later(90), 90), (later(200), 100), (later(50), 50), (later(49), 50)])
def test_a_run_is_ready_since_its_time_but_never_for_more_than_half_of_what_it_may_wait(time: TimestampMs, since: int) -> None:
    assert ready_since(time, later(100), Limits(max_age_ms=100)) == later(since)
