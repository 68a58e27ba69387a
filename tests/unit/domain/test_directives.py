"""Telling the owner of a run to pause or cancel it, and how it obeys."""

from collections.abc import Callable

import pytest

from aiki_push.domain.changes import Change, PutSlot, SaveRun
from aiki_push.domain.checkpoints import (
    Checkpoint,
    CompleteRun,
    FailRun,
    ParkRun,
    RetryRun,
    RunEnd,
    StallRun,
    YieldRun,
    decide_end,
    decide_hand_back,
    is_repeated,
)
from aiki_push.domain.claims import Owner, Recovery, decide_corrupt, decide_recovery, decide_refresh, decide_release
from aiki_push.domain.controls import decide_cancel, decide_directive, decide_pause, decide_resume
from aiki_push.domain.errors import IllegalTransition
from aiki_push.domain.limits import Limits
from aiki_push.domain.log_records import LogSlot, Tail, Transition
from aiki_push.domain.run import Directive, Run
from aiki_push.domain.run_states import AwaitingRetry, Cancelled, Paused, Queued, RunState, SelfCause, Sleeping, Stalled
from aiki_push.domain.values import Inline
from aiki_push.domain.waits import Wait
from tests.unit.domain.run_examples import BOOM, EARLIER, NAMESPACE, RUN_ID, later, note, running_run, saved

LIMITS = Limits(claim_idle_timeout_ms=90_000, max_recoveries=3)
NOW = later(200_000)
OWNER = Owner(claim_id="claim-a", revision=5)
LAST = Checkpoint(OWNER, "checkpoint-1", 3, True, (note("step"),))
EMPTY = Checkpoint(OWNER, "checkpoint-1", 3, True, ())

PAUSE = Directive(action="pause", operation_id="op-1")
CANCEL = Directive(action="cancel", operation_id="op-2", explanation="ordered twice")

SLEEP = Wait(kind="sleep", key="nap", ordinal=0, deadline_at=later(900_000))
CHILD = Wait(kind="child", key="child-1", ordinal=0)


def directed(directive: Directive, **fields: object) -> Run:
    """A running run whose owner was told."""
    return running_run(**{"directive": directive, "operations": ("op-0", directive.operation_id), **fields})


def test_a_directive_is_one_write_that_leaves_the_run_to_its_owner() -> None:
    assert decide_directive(running_run(operations=("op-0",)), PAUSE) == (
        SaveRun(running_run(directive=PAUSE, operations=("op-0", "op-1"))),
    )


@pytest.mark.parametrize(
    ("before", "asked", "after"),
    [
        (PAUSE, CANCEL, CANCEL),
        (PAUSE, Directive(action="pause", operation_id="op-3"), PAUSE),
        (CANCEL, Directive(action="cancel", operation_id="op-3", explanation="changed my mind"), CANCEL),
    ],
)
def test_a_cancel_replaces_a_pause_and_nothing_else_is_replaced(before: Directive, asked: Directive, after: Directive) -> None:
    told = saved(*decide_directive(directed(before), asked))
    assert told == directed(after, operations=("op-0", before.operation_id, asked.operation_id))


@pytest.mark.parametrize("asked", [PAUSE, CANCEL])
def test_a_directive_that_was_accepted_once_is_not_set_again_even_if_another_took_its_place(asked: Directive) -> None:
    run = directed(CANCEL, operations=("op-1", "op-2"))
    assert decide_directive(run, asked) == ()
    assert decide_pause(run, "op-1", None, NOW) == decide_cancel(run, "op-2", None, None, NOW) == ()


@pytest.mark.parametrize(
    "pause", [lambda run: decide_directive(run, PAUSE), lambda run: decide_pause(run, "op-1", None, NOW)], ids=["told", "taken"]
)
def test_a_run_that_is_being_cancelled_cannot_be_paused(pause: Callable[[Run], object]) -> None:
    with pytest.raises(IllegalTransition, match="is being cancelled; it cannot be paused any more") as refused:
        pause(directed(CANCEL))
    assert refused.value.fields == {"run_id": RUN_ID, "from_status": "running", "to_status": "paused"}


def test_a_run_that_is_about_to_pause_cannot_be_resumed_yet() -> None:
    with pytest.raises(IllegalTransition, match="is running, not paused yet; repeat this once it is"):
        decide_resume(directed(PAUSE), "op-3", NOW, LIMITS)


def test_a_run_that_is_to_pause_can_be_cancelled_at_once() -> None:
    save, _ = decide_cancel(directed(PAUSE), "op-2", None, None, NOW)
    assert (saved(save).state, saved(save).directive) == (Cancelled(), None)


def test_a_refresh_keeps_the_directive() -> None:
    assert saved(*decide_refresh(directed(PAUSE), OWNER, NOW, LIMITS)).directive == PAUSE


def moved(origin: str, state: RunState, revision: int, **told: object) -> Transition:
    fields = {"at": NOW, "origin": origin, "state": state, "revision": revision, "attempts": 1, **told}
    return Transition.model_validate(fields)


PAUSED = moved("running", Paused(), 6, executor="worker-a")
CANCELLED = moved("running", Cancelled(), 6, executor="worker-a", explanation="ordered twice")


def stopped(directive: Directive, run: Run, record: Transition, **fields: object) -> Run:
    """`run` after its owner let go of it."""
    pausing = {"due_at": None, "paused_from": run.state}
    ending = {"due_at": NOW, "duties": ("cancel_children",)}
    left = {"state": record.state, "revision": record.revision, "claim": None, "directive": None}
    return run.model_copy(update={**left, **(pausing if directive is PAUSE else ending), **fields})


STOPS = [pytest.param(PAUSE, PAUSED, id="pause"), pytest.param(CANCEL, CANCELLED, id="cancel")]


@pytest.mark.parametrize(("directive", "record"), STOPS)
@pytest.mark.parametrize(("last", "recoveries"), [(LAST, 0), (EMPTY, 2)])
def test_a_yield_becomes_what_was_directed_and_counts_as_no_recovery(
    directive: Directive, record: Transition, last: Checkpoint, recoveries: int
) -> None:
    run = directed(directive, recoveries=2)
    tail = Tail(position=3, records=(*EARLIER, *last.records, record))

    (save,) = decide_end(run, last, YieldRun(), NOW, LIMITS)

    assert save == SaveRun(stopped(directive, run, record, tail=tail, last_write=last.last_write, recoveries=recoveries))
    assert is_repeated(saved(save), last)


@pytest.mark.parametrize(("directive", "record"), STOPS)
def test_a_hand_back_becomes_what_was_directed_and_takes_its_slot(directive: Directive, record: Transition) -> None:
    run = directed(directive, recoveries=2)
    slot = LogSlot(
        position=3,
        records=(*EARLIER, note("step"), record),
        revision=6,
        at=NOW,
        claim_id="claim-a",
        checkpoint_id="checkpoint-1",
    )
    left = stopped(directive, run, record, tail=Tail(position=4, records=()), last_write=LAST.last_write, recoveries=0)
    assert decide_hand_back(run, LAST, NOW) == (SaveRun(left), PutSlot(NAMESPACE, RUN_ID, slot))


@pytest.mark.parametrize(("directive", "record"), STOPS)
def test_a_release_becomes_what_was_directed(directive: Directive, record: Transition) -> None:
    run, nobody = directed(directive, recoveries=2), record.model_copy(update={"executor": None})
    left = stopped(directive, run, nobody, tail=Tail(position=3, records=(*EARLIER, nobody)))
    assert decide_release(run, OWNER, None, NOW) == (SaveRun(left),)


def slot_at(position: int) -> LogSlot:
    return LogSlot(position=position, records=(note("s"),), revision=5, at=later(4_000), claim_id="claim-a")


@pytest.mark.parametrize(("directive", "record"), STOPS)
@pytest.mark.parametrize(("last", "recoveries"), [(None, 3), (slot_at(3), 0)])
def test_a_recovery_becomes_what_was_directed_instead_of_a_stall_too(
    directive: Directive, record: Transition, last: LogSlot | None, recoveries: int
) -> None:
    run = directed(directive, recoveries=2)
    position, unsealed = (3, EARLIER) if last is None else (4, ())
    left = stopped(directive, run, record, tail=Tail(position=position + 1, records=()), recoveries=recoveries)

    assert decide_recovery(run, Recovery(last=last, at_tail=last), NOW, LIMITS) == (
        SaveRun(left),
        PutSlot(NAMESPACE, RUN_ID, LogSlot(position=position, records=(*unsealed, record), revision=6, at=NOW)),
    )


@pytest.mark.parametrize("directive", [PAUSE, CANCEL])
def test_an_owner_that_is_alive_keeps_its_directive_and_its_run(directive: Directive) -> None:
    recovered = saved(*decide_recovery(directed(directive), Recovery(None, None), later(92_999), LIMITS))
    assert recovered == directed(directive)


PARK = ParkRun(waits=(SLEEP, CHILD), seen_seq=0)
RETRY = RetryRun(cause=SelfCause(), error=BOOM, next_attempt_at=later(300_000))
STALL = StallRun(reason="diverged", explanation="task b is new")
SLEEPING = Sleeping(wakeup_at=later(900_000))
RETRYING = AwaitingRetry(cause=SelfCause(), next_attempt_at=later(300_000))


def written(*changes: Change) -> tuple[Run, tuple[Transition, ...]]:
    """The header, and the transitions at the end of its tail."""
    run = saved(*changes)
    return run, tuple(record for record in run.tail.records if isinstance(record, Transition))


@pytest.mark.parametrize(
    ("end", "state", "told", "kept"),
    [
        (PARK, SLEEPING, {}, {"waits": (SLEEP, CHILD), "open_child_waits": 1}),
        (RETRY, RETRYING, {"error": BOOM}, {}),
    ],
)
def test_a_pause_keeps_the_state_that_the_owner_came_to(
    end: RunEnd, state: RunState, told: dict[str, object], kept: dict[str, object]
) -> None:
    run, records = written(*decide_end(directed(PAUSE, recoveries=2), LAST, end, NOW, LIMITS))

    came_to, paused = moved("running", state, 6, executor="worker-a", **told), moved(state.status, Paused(), 7)
    assert records == (came_to, paused)
    tail = Tail(position=3, records=(*EARLIER, note("step"), came_to, paused))
    written_by = {"tail": tail, "last_write": LAST.last_write, "recoveries": 0}
    assert run == stopped(PAUSE, directed(PAUSE), paused, paused_from=state, **written_by, **kept)


@pytest.mark.parametrize("end", [PARK, RETRY, STALL])
def test_a_cancel_ends_the_run_in_the_write_that_ends_the_segment(end: RunEnd) -> None:
    run, (_, cancelled) = written(*decide_end(directed(CANCEL, watched=True), LAST, end, NOW, LIMITS))

    assert (run.state, run.revision, run.waits, run.directive) == (Cancelled(), 7, (), None)
    assert (run.duties, run.due_at) == (("tell_watchers", "cancel_children"), NOW)
    assert (cancelled.revision, cancelled.explanation) == (7, "ordered twice")


def test_a_stall_wins_over_a_pause() -> None:
    run, records = written(*decide_end(directed(PAUSE), LAST, STALL, NOW, LIMITS))
    assert (run.state, run.directive, len(records)) == (Stalled(reason="diverged"), None, 1)


@pytest.mark.parametrize("directive", [PAUSE, CANCEL])
@pytest.mark.parametrize("end", [CompleteRun(output=Inline(value=1)), FailRun(cause=SelfCause(), error=BOOM)])
def test_an_end_wins_over_a_directive(directive: Directive, end: RunEnd) -> None:
    remembered = {"operations": ("op-0", directive.operation_id)}
    assert decide_end(directed(directive), LAST, end, NOW, LIMITS) == decide_end(
        running_run(**remembered), LAST, end, NOW, LIMITS
    )


def test_a_corrupt_log_stalls_a_run_that_is_to_pause_and_leaves_one_that_is_to_be_cancelled_cancelled() -> None:
    paused, _ = decide_corrupt(directed(PAUSE), None, NOW)
    cancelled, put = decide_corrupt(directed(CANCEL), None, NOW)

    assert (saved(paused).state, saved(paused).directive) == (Stalled(reason="corrupt_log"), None)
    assert (saved(cancelled).state, saved(cancelled).revision) == (Cancelled(), 7)
    assert isinstance(put, PutSlot)
    statuses = [record.state.status for record in put.slot.records if isinstance(record, Transition)]
    assert statuses == ["stalled", "cancelled"]


def test_what_was_directed_is_carried_out_on_a_run_that_a_yield_would_have_stalled() -> None:
    run = directed(PAUSE, recoveries=3)
    assert saved(*decide_end(run, EMPTY, YieldRun("too long"), NOW, LIMITS)).state == Paused()
    undirected = running_run(recoveries=2)
    assert saved(*decide_end(undirected, EMPTY, YieldRun("too long"), NOW, LIMITS)).state == Stalled(reason="crash_loop")


def test_a_run_is_let_go_into_its_queue_where_nothing_was_directed() -> None:
    assert saved(*decide_release(running_run(), OWNER, None, NOW)).state == Queued(reason="released")
