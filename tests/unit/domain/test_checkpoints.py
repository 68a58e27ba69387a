import pytest

from aiki_push.domain.changes import PutSlot, SaveRun
from aiki_push.domain.checkpoints import (
    Checkpoint,
    CompleteRun,
    FailRun,
    ParkRun,
    RetryRun,
    RunEnd,
    StallRun,
    YieldRun,
    append,
    decide_end,
    decide_hand_back,
    is_repeated,
)
from aiki_push.domain.claims import Owner
from aiki_push.domain.errors import IllegalTransition, RevisionConflict
from aiki_push.domain.limits import Limits
from aiki_push.domain.log_records import AnyRecord, LogSlot, RecordedError, Tail, Transition
from aiki_push.domain.run import LastWrite, Run
from aiki_push.domain.run_states import (
    AwaitingEvent,
    AwaitingRetry,
    ChildWorkflowCause,
    Completed,
    Failed,
    Queued,
    RunState,
    Sleeping,
    Stalled,
)
from aiki_push.domain.values import Inline, RunId
from aiki_push.domain.waits import Wait
from tests.unit.domain.run_examples import (
    BOOM,
    EARLIER,
    EXAMPLES,
    NAMESPACE,
    RUN_ID,
    later,
    note,
    queued_run,
    run_in,
    running_run,
    saved,
)

OWNER = Owner(claim_id="claim-a", revision=5)
NOW = later(4_000)
LIMITS = Limits(max_recoveries=10)
STEPS = (note("step-1"), note("step-2"))
WROTE = LastWrite(checkpoint_id="checkpoint-1", claim_id="claim-a")


def checkpoint(position: int = 3, is_first: bool = True, records: tuple[AnyRecord, ...] = STEPS) -> Checkpoint:
    return Checkpoint(OWNER, "checkpoint-1", position, is_first, records)


FIRST = checkpoint()
THIRD = checkpoint(position=5, is_first=False)
"""After two appends, which took the tail's position and the next."""


def moved(
    state: RunState, output: Inline | None = None, error: RecordedError | None = None, explanation: str | None = None
) -> Transition:
    return Transition(
        at=NOW,
        origin="running",
        state=state,
        revision=6,
        attempts=2,
        executor="worker-a",
        output=output,
        error=error,
        explanation=explanation,
    )


def test_the_first_append_of_a_segment_begins_with_the_records_of_the_tail() -> None:
    slot = LogSlot(position=3, records=(*EARLIER, *STEPS), revision=5, at=NOW, claim_id="claim-a", checkpoint_id="checkpoint-1")
    assert append(NAMESPACE, RUN_ID, FIRST, EARLIER, NOW) == PutSlot(NAMESPACE, RUN_ID, slot)


def test_a_later_append_holds_its_own_records_only() -> None:
    slot = LogSlot(position=5, records=STEPS, revision=5, at=NOW, claim_id="claim-a", checkpoint_id="checkpoint-1")
    assert append(NAMESPACE, RUN_ID, THIRD, (), NOW) == PutSlot(NAMESPACE, RUN_ID, slot)


@pytest.mark.parametrize(
    ("last_write", "expected"),
    [
        (WROTE, True),
        (None, False),
        (LastWrite(checkpoint_id="checkpoint-2", claim_id="claim-a"), False),
        (LastWrite(checkpoint_id="checkpoint-1", claim_id="claim-b"), False),
    ],
)
def test_a_checkpoint_is_repeated_if_it_made_the_runs_latest_transition(last_write: LastWrite | None, expected: bool) -> None:
    assert is_repeated(queued_run(last_write=last_write), FIRST) is expected


EVENT = Wait(kind="event", key="paid", ordinal=0)
SLEEP = Wait(kind="sleep", key="pause", ordinal=1, deadline_at=later(60_000))
CHILD = Wait(kind="child", key="child-1", ordinal=0, deadline_at=later(90_000))
CHILD_FAILED = ChildWorkflowCause(run_id=RunId("01J8ZQ4T9VX6E4Y2M3N5P7R8SB"))

Kept = dict[str, object]

ENDS: list[tuple[RunEnd, Transition, Kept]] = [
    (CompleteRun(output=Inline(value=7)), moved(Completed(), output=Inline(value=7)), {}),
    (FailRun(cause=CHILD_FAILED, error=BOOM), moved(Failed(cause=CHILD_FAILED), error=BOOM), {}),
    (
        RetryRun(cause=CHILD_FAILED, error=BOOM, next_attempt_at=later(9_000)),
        moved(AwaitingRetry(cause=CHILD_FAILED, next_attempt_at=later(9_000)), error=BOOM),
        {"due_at": later(9_000)},
    ),
    (
        StallRun(reason="diverged", explanation="task b is new"),
        moved(Stalled(reason="diverged"), explanation="task b is new"),
        {},
    ),
    (ParkRun(waits=(EVENT,), seen_seq=3), moved(AwaitingEvent()), {"waits": (EVENT,), "seen_seq": 3}),
    (
        ParkRun(waits=(EVENT, CHILD, SLEEP), seen_seq=2),
        moved(Sleeping(wakeup_at=later(60_000))),
        {"waits": (EVENT, CHILD, SLEEP), "seen_seq": 2, "open_child_waits": 1, "due_at": later(60_000)},
    ),
    (YieldRun(), moved(Queued(reason="yield")), {"ready_at": NOW, "due_at": NOW}),
]


def ended(run: Run, record: Transition, tail: Tail, **kept: object) -> Run:
    left = {"claim": None, "due_at": None, "recoveries": 0}
    written = {"state": record.state, "revision": 6, "last_write": WROTE, "tail": tail}
    return run.model_copy(update={**left, **written, **kept})


RUN = running_run(attempts=2, recoveries=4, inbox_seq=3)


@pytest.mark.parametrize(("end", "record", "kept"), ENDS)
def test_a_segment_that_appended_nothing_ends_in_the_tail_it_began_with(end: RunEnd, record: Transition, kept: Kept) -> None:
    tail = Tail(position=3, records=(*EARLIER, *STEPS, record))
    assert decide_end(RUN, FIRST, end, NOW, LIMITS) == (SaveRun(ended(RUN, record, tail, **kept)),)


@pytest.mark.parametrize(("end", "record", "kept"), ENDS)
def test_a_segment_that_appended_ends_in_a_new_tail_after_its_last_append(end: RunEnd, record: Transition, kept: Kept) -> None:
    tail = Tail(position=5, records=(*STEPS, record))
    assert decide_end(RUN, THIRD, end, NOW, LIMITS) == (SaveRun(ended(RUN, record, tail, **kept)),)


def test_a_large_output_is_sealed_with_the_tail_of_a_segment_that_appended_nothing() -> None:
    output = Inline(value="🦉" * 1_000)
    record = moved(Completed(), output=output)
    save, put = decide_end(RUN, FIRST, CompleteRun(output=output), NOW, LIMITS)

    assert save == SaveRun(ended(RUN, record, Tail(position=4, records=())))
    assert isinstance(put, PutSlot)
    assert (put.namespace, put.run_id, put.slot.position) == (NAMESPACE, RUN_ID, 3)
    assert put.slot.records == (*EARLIER, *STEPS, record)


def test_a_large_output_is_sealed_after_the_last_append_of_a_segment() -> None:
    output = Inline(value="🦉" * 1_000)
    record = moved(Completed(), output=output)
    save, put = decide_end(RUN, THIRD, CompleteRun(output=output), NOW, LIMITS)

    assert save == SaveRun(ended(RUN, record, Tail(position=6, records=())))
    assert isinstance(put, PutSlot)
    assert (put.namespace, put.run_id, put.slot.position) == (NAMESPACE, RUN_ID, 5)
    assert put.slot.records == (*STEPS, record)


def test_an_end_is_recognised_when_it_is_repeated() -> None:
    parked = saved(*decide_end(RUN, FIRST, ParkRun(waits=(EVENT,), seen_seq=3), NOW, LIMITS))
    assert is_repeated(parked, FIRST)
    assert not is_repeated(parked, Checkpoint(OWNER, "checkpoint-2", 3, True, STEPS))


def test_the_child_waits_of_a_park_are_counted_before_they_collapse_into_one() -> None:
    children = tuple(Wait(kind="child", key=f"child-{number}", ordinal=0) for number in range(40))

    parked = saved(*decide_end(RUN, FIRST, ParkRun(waits=children, seen_seq=3), NOW, LIMITS))

    assert (parked.waits, parked.open_child_waits) == ((Wait(kind="child", key="*", ordinal=0),), 40)


@pytest.mark.parametrize("end", [CompleteRun(output=Inline(value=7)), FailRun(cause=CHILD_FAILED, error=BOOM)])
def test_a_run_that_is_watched_ends_with_the_duty_to_tell_of_it(end: RunEnd) -> None:
    (alone,) = decide_end(RUN, FIRST, end, NOW, LIMITS)
    (watched,) = decide_end(RUN.model_copy(update={"watched": True}), FIRST, end, NOW, LIMITS)

    told = {"watched": True, "duties": ("tell_watchers",), "due_at": NOW}
    assert saved(watched) == saved(alone).model_copy(update=told)


NO_STEPS = checkpoint(records=())


@pytest.mark.parametrize("progress", [FIRST, THIRD, checkpoint(position=5, is_first=False, records=())])
def test_a_yield_with_progress_starts_the_count_of_recoveries_anew(progress: Checkpoint) -> None:
    run = running_run(recoveries=9)
    assert saved(*decide_end(run, progress, YieldRun("charge takes 20 min"), NOW, LIMITS)).recoveries == 0


@pytest.mark.parametrize("recoveries", [0, 8])
def test_a_yield_without_progress_counts_like_a_recovery_without_any(recoveries: int) -> None:
    yielded = saved(*decide_end(running_run(recoveries=recoveries), NO_STEPS, YieldRun("charge takes 20 min"), NOW, LIMITS))
    assert (yielded.state, yielded.recoveries) == (Queued(reason="yield"), recoveries + 1)


@pytest.mark.parametrize(
    ("explanation", "told"),
    [(None, ""), ("charge takes 20 min", ": charge takes 20 min")],
)
def test_the_tenth_in_a_row_stalls_the_run_and_says_what_did_not_fit(explanation: str | None, told: str) -> None:
    run = running_run(attempts=2, recoveries=9)
    why = f"10 executors in a row gave the run up before they could record anything; the last, worker-a{told}"
    record = moved(Stalled(reason="crash_loop"), explanation=why)

    (save,) = decide_end(run, NO_STEPS, YieldRun(explanation), NOW, LIMITS)

    assert save == SaveRun(ended(run, record, Tail(position=3, records=(*EARLIER, record)), recoveries=10))


def test_an_executor_cannot_stall_a_run_for_not_being_delivered() -> None:
    with pytest.raises(IllegalTransition):
        decide_end(RUN, FIRST, StallRun(reason="undelivered", explanation="no"), NOW, LIMITS)


NOT_OWNED = [
    running_run(revision=6),
    running_run(revision=7, claim=RUN.claim.model_copy(update={"claim_id": "claim-b"}) if RUN.claim else None),
    queued_run(),
    run_in(EXAMPLES["completed"]),
]


@pytest.mark.parametrize("run", NOT_OWNED)
@pytest.mark.parametrize("end", [end for end, *_ in ENDS])
def test_nobody_but_the_owner_ends_a_segment(run: Run, end: RunEnd) -> None:
    with pytest.raises(RevisionConflict) as refused:
        decide_end(run, FIRST, end, NOW, LIMITS)
    assert refused.value.fields == {"run_id": RUN_ID, "expected_revision": 5, "revision": run.revision}


@pytest.mark.parametrize("run", NOT_OWNED)
def test_nobody_but_the_owner_hands_a_run_back(run: Run) -> None:
    with pytest.raises(RevisionConflict) as refused:
        decide_hand_back(run, THIRD, NOW)
    assert refused.value.fields == {"run_id": RUN_ID, "expected_revision": 5, "revision": run.revision}


@pytest.mark.parametrize(
    ("handed_back", "unsealed"),
    [pytest.param(FIRST, EARLIER, id="the first append"), pytest.param(THIRD, (), id="a later append")],
)
def test_a_hand_back_takes_the_slot_of_the_append_that_got_no_answer(
    handed_back: Checkpoint, unsealed: tuple[AnyRecord, ...]
) -> None:
    record = moved(Queued(reason="yield"))
    slot = LogSlot(
        position=handed_back.position,
        records=(*unsealed, *STEPS, record),
        revision=6,
        at=NOW,
        claim_id="claim-a",
        checkpoint_id="checkpoint-1",
    )
    queued = ended(RUN, record, Tail(position=handed_back.position + 1, records=()), ready_at=NOW, due_at=NOW)

    assert decide_hand_back(RUN, handed_back, NOW) == (
        SaveRun(queued),
        PutSlot(NAMESPACE, RUN_ID, slot),
    )


def test_a_hand_back_is_recognised_when_it_is_repeated() -> None:
    save, _ = decide_hand_back(RUN, THIRD, NOW)
    assert is_repeated(saved(save), THIRD)
