"""Resuming a paused run: where it goes, and since when."""

import pytest

from aiki_push.domain.changes import SaveRun
from aiki_push.domain.controls import decide_pause, decide_resume
from aiki_push.domain.errors import IllegalTransition
from aiki_push.domain.limits import Limits
from aiki_push.domain.log_records import Tail, Transition
from aiki_push.domain.run import Run
from aiki_push.domain.run_states import (
    AwaitingChildWorkflow,
    AwaitingEvent,
    AwaitingTaskRetry,
    Paused,
    Queued,
    Running,
    RunState,
    Scheduled,
    Sleeping,
)
from aiki_push.domain.values import TimestampMs
from aiki_push.domain.waits import Wait
from tests.unit.domain.run_examples import EARLIER, EXAMPLES, RUN_ID, later, queued_run, run_in, running_run, saved

LIMITS = Limits(max_age_ms=10_000)
DUE_AT = later(500)


def paused(origin: RunState | None, **fields: object) -> Run:
    """A run that was paused in `origin`."""
    return run_in(Paused(), **{"paused_from": origin, "attempts": 2, "recoveries": 3, **fields})


def resumed(run: Run, state: RunState, now: TimestampMs, **fields: object) -> tuple[SaveRun]:
    """`run` in `state`, in one write."""
    attempts = fields.get("attempts", 2)
    record = Transition(at=now, origin="paused", state=state, revision=6, attempts=attempts)
    left = {"paused_from": None, "waits": (), "seen_seq": 0, "open_child_waits": 0}
    tail = Tail(position=3, records=(*EARLIER, record))
    written = {"state": state, "revision": 6, "operations": ("op-1",), "tail": tail}
    return (SaveRun(run.model_copy(update={**left, **written, **fields})),)


@pytest.mark.parametrize("origin", [Queued(reason="new"), Queued(reason="event"), Running(), None])
def test_a_run_that_was_queued_or_running_is_queued_anew(origin: RunState | None) -> None:
    now = later(900)
    expected = resumed(paused(origin), Queued(reason="resumption"), now, ready_at=now, due_at=now)
    assert decide_resume(paused(origin), "op-1", now, LIMITS) == expected


SCHEDULED, RETRYING = EXAMPLES["scheduled"], EXAMPLES["awaiting_retry"]


@pytest.mark.parametrize("origin", [SCHEDULED, RETRYING])
@pytest.mark.parametrize("now", [later(0), later(499)])
def test_a_run_whose_time_has_not_come_keeps_it(origin: RunState, now: TimestampMs) -> None:
    assert decide_resume(paused(origin), "op-1", now, LIMITS) == resumed(paused(origin), origin, now, due_at=DUE_AT)


@pytest.mark.parametrize("now", [DUE_AT, later(5_500)])
@pytest.mark.parametrize(
    ("origin", "reason", "attempts"), [(SCHEDULED, "new", 2), (RETRYING, "retry", 3)], ids=["scheduled", "awaiting_retry"]
)
def test_a_run_whose_time_has_come_is_queued_since_then(origin: RunState, reason: str, attempts: int, now: TimestampMs) -> None:
    state = Queued.model_validate({"reason": reason})
    expected = resumed(paused(origin), state, now, attempts=attempts, ready_at=DUE_AT, due_at=now)
    assert decide_resume(paused(origin), "op-1", now, LIMITS) == expected


@pytest.mark.parametrize("origin", [SCHEDULED, RETRYING])
def test_a_long_pause_does_not_leave_the_run_so_old_that_it_stalls(origin: RunState) -> None:
    assert saved(*decide_resume(paused(origin), "op-1", later(60_000), LIMITS)).ready_at == later(55_000)


NAP = Wait(kind="sleep", key="nap", ordinal=0, deadline_at=DUE_AT)
EVENT = Wait(kind="event", key="paid", ordinal=0)
CHILDREN = Wait(kind="child", key="*", ordinal=0, deadline_at=later(700))
RETRY = Wait(kind="task_retry", key="task-1", ordinal=0, deadline_at=DUE_AT)

PARKED: list[tuple[RunState, tuple[Wait, ...], TimestampMs | None]] = [
    (Sleeping(wakeup_at=DUE_AT), (CHILDREN, NAP), DUE_AT),
    (AwaitingEvent(), (EVENT,), None),
    (AwaitingChildWorkflow(timeout_at=later(700)), (CHILDREN, EVENT), later(700)),
    (AwaitingTaskRetry(next_attempt_at=DUE_AT), (RETRY,), DUE_AT),
]


@pytest.mark.parametrize(("origin", "waits", "due_at"), PARKED)
def test_a_parked_run_without_news_is_parked_as_it_was(
    origin: RunState, waits: tuple[Wait, ...], due_at: TimestampMs | None
) -> None:
    kept = {"waits": waits, "seen_seq": 4, "inbox_seq": 4, "open_child_waits": 40}
    run = paused(origin, **kept)
    assert decide_resume(run, "op-1", later(499), LIMITS) == resumed(run, origin, later(499), due_at=due_at, **kept)


@pytest.mark.parametrize(("origin", "waits", "due_at"), PARKED)
def test_a_parked_run_that_got_a_message_meanwhile_is_queued(
    origin: RunState, waits: tuple[Wait, ...], due_at: TimestampMs | None
) -> None:
    run, now = paused(origin, waits=waits, seen_seq=4, inbox_seq=5, open_child_waits=40), later(499)
    assert decide_resume(run, "op-1", now, LIMITS) == resumed(run, Queued(reason="resumption"), now, ready_at=now, due_at=now)


@pytest.mark.parametrize(("origin", "waits", "due_at"), [one for one in PARKED if one[2] is not None])
def test_a_parked_run_with_a_deadline_that_has_passed_is_queued(
    origin: RunState, waits: tuple[Wait, ...], due_at: TimestampMs
) -> None:
    run = paused(origin, waits=waits, seen_seq=4, inbox_seq=4)
    assert decide_resume(run, "op-1", due_at, LIMITS) == resumed(
        run, Queued(reason="resumption"), due_at, ready_at=due_at, due_at=due_at
    )
    assert saved(*decide_resume(run, "op-1", TimestampMs(due_at - 1), LIMITS)).state == origin


@pytest.mark.parametrize(
    "run",
    [
        queued_run(),
        run_in(Scheduled(scheduled_at=DUE_AT), due_at=DUE_AT),
        run_in(Sleeping(wakeup_at=DUE_AT), waits=(NAP, CHILDREN), seen_seq=2, inbox_seq=2, open_child_waits=9, due_at=DUE_AT),
    ],
    ids=lambda run: run.state.status,
)
def test_a_pause_and_a_resumption_lose_nothing(run: Run) -> None:
    stopped = saved(*decide_pause(run, "op-1", None, later(100)))
    again = saved(*decide_resume(stopped, "op-2", later(200), LIMITS))

    is_queued = isinstance(run.state, Queued)
    expected = {"state": Queued(reason="resumption"), "ready_at": later(200), "due_at": later(200)} if is_queued else {}
    assert again == run.model_copy(update={**expected, "revision": 7, "operations": ("op-1", "op-2"), "tail": again.tail})


def test_only_a_paused_run_can_be_resumed() -> None:
    with pytest.raises(IllegalTransition) as refused:
        decide_resume(running_run(), "op-1", later(1), LIMITS)
    assert refused.value.detail == f"run {RUN_ID} is running, not paused"
    assert refused.value.fields == {"run_id": RUN_ID, "from_status": "running", "to_status": "queued"}
