import pytest

from aiki_push.domain.changes import Change, CreateRun, PutSlot, SaveRun
from aiki_push.domain.checkpoints import Checkpoint, CompleteRun, append, decide_end
from aiki_push.domain.claims import Claimer, Owner, Recovery, decide_claim, decide_corrupt, decide_recovery, decide_refresh
from aiki_push.domain.errors import IllegalTransition, RevisionConflict
from aiki_push.domain.limits import Limits
from aiki_push.domain.log_records import LogSlot, Tail, Transition
from aiki_push.domain.run import Run
from aiki_push.domain.run_states import Queued, Running, RunState, Stalled, Status
from aiki_push.domain.values import Inline, TimestampMs
from tests.unit.domain.run_examples import (
    CLAIM,
    EARLIER,
    EXAMPLES,
    NAMESPACE,
    RUN_ID,
    later,
    note,
    queued_run,
    run_in,
    running_run,
)
from tests.unit.domain.run_table import Refused, RunTable

LIMITS = Limits(claim_idle_timeout_ms=90_000, max_recoveries=10)
SILENT_AT = later(93_000)
"""90 s after the last refresh in `CLAIM`."""

STEPPED_AT = later(3_500)

NOTHING = Recovery(last=None, at_tail=None)


def slot_at(position: int, at: TimestampMs = STEPPED_AT, claim_id: str | None = "claim-a") -> LogSlot:
    return LogSlot(position=position, records=(note(f"step-{position}"),), revision=5, at=at, claim_id=claim_id)


def moved(state: RunState, at: TimestampMs, executor: str | None = "worker-a", explanation: str | None = None) -> Transition:
    return Transition(at=at, origin="running", state=state, revision=6, attempts=1, executor=executor, explanation=explanation)


def taken(run: Run, slot: LogSlot, **fields: object) -> tuple[Change, ...]:
    """`run` without its owner, one revision on, and `slot` with which it was taken away."""
    left = {"revision": 6, "claim": None, "due_at": None, "tail": Tail(position=slot.position + 1, records=())}
    return SaveRun(run.model_copy(update={**left, **fields})), PutSlot(NAMESPACE, RUN_ID, slot)


def test_an_owner_that_wrote_nothing_loses_the_run_and_the_slot_it_would_have_written_next() -> None:
    run = running_run(recoveries=3)
    record = moved(Queued(reason="recovery"), SILENT_AT)

    assert decide_recovery(run, NOTHING, SILENT_AT, LIMITS) == taken(
        run,
        LogSlot(position=3, records=(*EARLIER, record), revision=6, at=SILENT_AT),
        state=Queued(reason="recovery"),
        recoveries=4,
        ready_at=SILENT_AT,
        due_at=SILENT_AT,
    )


def test_slots_before_the_tail_are_no_progress_of_this_owner() -> None:
    before = Recovery(last=slot_at(2, at=SILENT_AT), at_tail=None)
    assert decide_recovery(running_run(), before, SILENT_AT, LIMITS) == decide_recovery(running_run(), NOTHING, SILENT_AT, LIMITS)


@pytest.mark.parametrize("last_position", [3, 6])
def test_an_owner_that_appended_loses_the_slot_after_its_last(last_position: int) -> None:
    run = running_run(recoveries=9)
    found = Recovery(last=slot_at(last_position), at_tail=slot_at(3))
    now = later(93_500)

    assert decide_recovery(run, found, now, LIMITS) == taken(
        run,
        LogSlot(position=last_position + 1, records=(moved(Queued(reason="recovery"), now),), revision=6, at=now),
        state=Queued(reason="recovery"),
        recoveries=0,
        ready_at=now,
        due_at=now,
    )


@pytest.mark.parametrize("now", [later(4_000), later(92_999)])
def test_an_owner_that_refreshed_lately_is_alive_and_only_the_due_time_moves(now: TimestampMs) -> None:
    run = running_run(due_at=later(4_000))
    assert decide_recovery(run, NOTHING, now, LIMITS) == (SaveRun(run.model_copy(update={"due_at": later(93_000)})),)


@pytest.mark.parametrize("last_position", [3, 8])
def test_an_owner_that_appended_lately_is_alive_and_only_the_due_time_moves(last_position: int) -> None:
    run = running_run()
    found = Recovery(last=slot_at(last_position, at=later(60_000)), at_tail=slot_at(3))

    assert decide_recovery(run, found, later(149_999), LIMITS) == (SaveRun(run.model_copy(update={"due_at": later(150_000)})),)


def test_an_owner_is_silent_exactly_at_the_end_of_the_idle_timeout() -> None:
    found = Recovery(last=slot_at(3, at=later(60_000)), at_tail=slot_at(3, at=later(60_000)))
    assert len(decide_recovery(running_run(), found, later(149_999), LIMITS)) == 1
    assert len(decide_recovery(running_run(), found, later(150_000), LIMITS)) == 2


def test_a_refresh_after_the_last_append_counts() -> None:
    found = Recovery(last=slot_at(3, at=later(2_500)), at_tail=slot_at(3, at=later(2_500)))
    run = running_run()
    assert decide_recovery(run, found, later(92_999), LIMITS) == (SaveRun(run.model_copy(update={"due_at": later(93_000)})),)


@pytest.mark.parametrize("claim_id", ["claim-b", None])
@pytest.mark.parametrize("last_position", [3, 5])
def test_a_slot_in_the_tails_place_that_its_owner_did_not_write_stalls_the_run_and_hides_nothing(
    claim_id: str | None, last_position: int
) -> None:
    run = running_run()
    found = Recovery(last=slot_at(last_position), at_tail=slot_at(3, claim_id=claim_id))

    assert decide_recovery(run, found, later(93_500), LIMITS) == decide_corrupt(run, found.last, later(93_500))


def test_a_gap_in_the_tails_place_stalls_the_run_and_hides_nothing() -> None:
    run = running_run()
    found = Recovery(last=slot_at(4), at_tail=None)

    assert decide_recovery(run, found, later(93_500), LIMITS) == decide_corrupt(run, found.last, later(93_500))


@pytest.mark.parametrize(("last_position", "position"), [(None, 3), (2, 3), (3, 4), (5, 6)])
def test_a_run_with_a_corrupt_log_stalls_in_the_next_free_slot_with_the_records_of_its_tail(
    last_position: int | None, position: int
) -> None:
    run = running_run(recoveries=2)
    state = Stalled(reason="corrupt_log")
    explanation = (
        f"the log of run {RUN_ID} has a gap or a slot at or after position 3 that the run's owner did not write; "
        "look at its history before you requeue it"
    )
    record = moved(state, later(5_000), executor=None, explanation=explanation)

    assert decide_corrupt(run, None if last_position is None else slot_at(last_position), later(5_000)) == taken(
        run, LogSlot(position=position, records=(*EARLIER, record), revision=6, at=later(5_000)), state=state
    )


def test_only_a_running_run_stalls_for_its_corrupt_log() -> None:
    with pytest.raises(IllegalTransition):
        decide_corrupt(queued_run(), None, later(5_000))


def test_the_tenth_recovery_in_a_row_without_progress_stalls_the_run() -> None:
    run = running_run(recoveries=9)
    state = Stalled(reason="crash_loop")
    explanation = "10 executors in a row died or fell silent before they could record anything; the last: worker-a"

    assert decide_recovery(run, NOTHING, SILENT_AT, LIMITS) == taken(
        run,
        LogSlot(
            position=3,
            records=(*EARLIER, moved(state, SILENT_AT, explanation=explanation)),
            revision=6,
            at=SILENT_AT,
        ),
        state=state,
    )


@pytest.mark.parametrize("status", [status for status in EXAMPLES if status != "running"])
def test_a_run_that_nobody_executes_needs_no_recovery(status: Status) -> None:
    assert decide_recovery(run_in(EXAMPLES[status]), NOTHING, SILENT_AT, LIMITS) == ()
    assert decide_recovery(run_in(EXAMPLES[status], claim=CLAIM), NOTHING, SILENT_AT, LIMITS) == ()


def test_a_running_run_without_a_claim_is_left_alone() -> None:
    assert decide_recovery(run_in(Running()), NOTHING, SILENT_AT, LIMITS) == ()


def claim(table: RunTable, claim_id: str, executor: str, now: TimestampMs) -> None:
    decision = decide_claim(table.run(NAMESPACE, RUN_ID), Claimer(claim_id, executor), now, LIMITS)
    assert isinstance(decision, tuple)
    table.commit(*decision)


@pytest.mark.parametrize("appended", [0, 1, 2])
def test_an_owner_that_wakes_up_after_the_run_was_given_to_another_can_do_nothing(appended: int) -> None:
    table = RunTable()
    table.commit(CreateRun(queued_run(revision=4)))

    claim(table, "claim-a", "worker-a", later(2_000))
    assert table.run(NAMESPACE, RUN_ID).revision == 5
    tail = table.run(NAMESPACE, RUN_ID).tail
    owner_a = Owner(claim_id="claim-a", revision=5)
    for step in range(appended):
        checkpoint = Checkpoint(owner_a, f"step-{step}", 3 + step, step == 0, (note(f"step-{step}"),))
        table.commit(append(NAMESPACE, RUN_ID, checkpoint, tail.records if step == 0 else (), later(3_000)))

    slots = table.slots(NAMESPACE, RUN_ID)
    found = Recovery(last=slots[-1] if slots else None, at_tail=slots[0] if slots else None)
    table.commit(*decide_recovery(table.run(NAMESPACE, RUN_ID), found, later(93_000), LIMITS))
    assert table.run(NAMESPACE, RUN_ID).revision == 6
    assert table.run(NAMESPACE, RUN_ID).state == Queued(reason="recovery")

    claim(table, "claim-b", "worker-b", later(94_000))
    owned_by_b = table.run(NAMESPACE, RUN_ID)
    log = table.log(NAMESPACE, RUN_ID)
    assert owned_by_b.revision == 7

    late = Checkpoint(owner_a, "late", 3 + appended, appended == 0, (note("late"),))
    with pytest.raises(Refused) as refused:
        table.commit(append(NAMESPACE, RUN_ID, late, tail.records if appended == 0 else (), later(95_000)))
    assert refused.value.slot == table.slots(NAMESPACE, RUN_ID)[-1]
    assert refused.value.slot.checkpoint_id is None
    with pytest.raises(RevisionConflict) as finish:
        decide_end(owned_by_b, late, CompleteRun(output=Inline(value=1)), later(95_000), LIMITS)
    with pytest.raises(RevisionConflict) as refresh:
        decide_refresh(owned_by_b, owner_a, later(95_000), LIMITS)
    assert finish.value.fields == refresh.value.fields == {"run_id": RUN_ID, "expected_revision": 5, "revision": 7}
    assert table.run(NAMESPACE, RUN_ID) == owned_by_b
    assert table.log(NAMESPACE, RUN_ID) == log

    owner_b = Owner(claim_id="claim-b", revision=7)
    end = Checkpoint(owner_b, "end", owned_by_b.tail.position, True, ())
    table.commit(*decide_end(owned_by_b, end, CompleteRun(output=Inline(value=2)), later(96_000), LIMITS))
    assert table.run(NAMESPACE, RUN_ID).revision == 8
    assert [record.revision for record in table.log(NAMESPACE, RUN_ID) if isinstance(record, Transition)] == [5, 6, 7, 8]
