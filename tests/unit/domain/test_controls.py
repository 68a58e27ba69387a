"""Control from outside: every operation in every state, what it writes, and that it is done once."""

from collections.abc import Callable

import pytest

from aiki_push.domain.changes import Change, PutMessage, PutSlot, SaveRun
from aiki_push.domain.controls import decide_cancel, decide_pause, decide_requeue, decide_resume, decide_wake_up
from aiki_push.domain.errors import IllegalTransition
from aiki_push.domain.inbox import Message
from aiki_push.domain.limits import Limits
from aiki_push.domain.log_records import LogSlot, Tail, Transition
from aiki_push.domain.run import Run
from aiki_push.domain.run_states import Cancelled, Paused, Queued, Running, RunState, Sleeping, Stalled, Status
from aiki_push.domain.waits import Wait
from tests.unit.domain.run_examples import EARLIER, EXAMPLES, NAMESPACE, RUN_ID, later, note, run_in, running_run, saved

NOW = later(100)
LIMITS = Limits()

NAP = Wait(kind="sleep", key="nap", ordinal=0, deadline_at=later(500))

Decide = Callable[[Run, str], tuple[Change, ...]]
OPERATIONS: dict[str, Decide] = {
    "pause": lambda run, operation_id: decide_pause(run, operation_id, None, NOW),
    "resume": lambda run, operation_id: decide_resume(run, operation_id, NOW, LIMITS),
    "cancel": lambda run, operation_id: decide_cancel(run, operation_id, None, None, NOW),
    "wakeup": lambda run, operation_id: decide_wake_up(run, operation_id, None, NOW),
    "requeue": lambda run, operation_id: decide_requeue(run, operation_id, NOW),
}

TABLE = """
                          pause    resume    cancel      wakeup   requeue
scheduled                 paused   -         cancelled   -        -
queued                    paused   -         cancelled   queued   -
running                   paused   -         cancelled   running  -
paused                    -        sleeping  cancelled   paused   -
sleeping                  paused   -         cancelled   queued   -
awaiting_event            paused   -         cancelled   queued   -
awaiting_child_workflow   paused   -         cancelled   queued   -
awaiting_task_retry       paused   -         cancelled   queued   -
awaiting_retry            paused   -         cancelled   -        -
stalled                   -        -         cancelled   -        queued
completed                 -        -         -           -        -
failed                    -        -         -           -        -
cancelled                 -        -         -           -        -
"""
"""Which status each operation leaves a run in that is parked on a sleep, or was when it was paused; `-`: the operation is refused."""


def cells() -> list[tuple[str, str, str]]:
    header, *rows = (line.split() for line in TABLE.strip().splitlines())
    return [(row[0], operation, after) for row in rows for operation, after in zip(header, row[1:], strict=True)]


def example(status: str) -> Run:
    """A run in the state; a parked or paused one is, or was, in a sleep."""
    parked = {"waits": (NAP,), "due_at": later(500)}
    if status == "paused":
        return run_in(Paused(), paused_from=Sleeping(wakeup_at=later(500)), waits=(NAP,))
    if status == "running":
        return running_run()
    return run_in(EXAMPLES[status], **(parked if status in PARKED else {}))  # type: ignore[index] # the table has statuses only


PARKED = ("sleeping", "awaiting_event", "awaiting_child_workflow", "awaiting_task_retry")


def test_the_table_has_every_state_and_every_operation() -> None:
    assert [(status, operation) for status, operation, _ in cells()] == [
        (status, operation) for status in EXAMPLES for operation in OPERATIONS
    ]


@pytest.mark.parametrize(("status", "operation", "after"), cells())
def test_an_operation_is_legal_exactly_where_the_table_says_so(status: str, operation: str, after: str) -> None:
    run = example(status)
    if after == "-":
        with pytest.raises(IllegalTransition, match=f"^run {RUN_ID} is {status}") as refused:
            OPERATIONS[operation](run, "op-1")
        assert refused.value.fields["from_status"] == status
        return
    save = OPERATIONS[operation](run, "op-1")[0]
    assert isinstance(save, SaveRun)
    assert (save.run.state.status, save.run.operations) == (after, ("op-1",))
    assert save.run.revision == (5 if status == after else 6)


@pytest.mark.parametrize("status", list(EXAMPLES))
@pytest.mark.parametrize("operation", list(OPERATIONS))
def test_an_operation_that_was_carried_out_changes_nothing_whatever_became_of_the_run(status: str, operation: str) -> None:
    run = example(status).model_copy(update={"operations": ("op-1", "op-2")})
    assert OPERATIONS[operation](run, "op-1") == ()


@pytest.mark.parametrize(
    ("operation", "status"),
    [("pause", "queued"), ("resume", "paused"), ("cancel", "queued"), ("wakeup", "queued"), ("requeue", "stalled")],
)
def test_a_header_remembers_the_latest_eight_operations(operation: str, status: str) -> None:
    run = example(status).model_copy(update={"operations": tuple(f"op-{i}" for i in range(8))})
    save = OPERATIONS[operation](run, "op-8")[0]
    assert isinstance(save, SaveRun)
    assert save.run.operations == tuple(f"op-{i}" for i in range(1, 9))


def moved(run: Run, state: RunState, explanation: str | None = None) -> Transition:
    return Transition(at=NOW, origin=run.state.status, state=state, revision=6, attempts=run.attempts, explanation=explanation)


WAITING = {"waits": (NAP, Wait(kind="child", key="*", ordinal=0)), "seen_seq": 3, "open_child_waits": 40, "inbox_seq": 4}


@pytest.mark.parametrize("status", ["scheduled", "queued", "awaiting_retry", *PARKED])
def test_a_pause_is_one_write_that_keeps_what_resuming_needs(status: Status) -> None:
    kept = WAITING if status in PARKED else {"inbox_seq": 4}
    run = run_in(EXAMPLES[status], attempts=2, due_at=later(500), ready_at=later(50), recoveries=2, **kept)
    paused = {
        "state": Paused(),
        "paused_from": run.state,
        "revision": 6,
        "operations": ("op-1",),
        "due_at": None,
        "ready_at": None,
        "tail": Tail(position=3, records=(*EARLIER, moved(run, Paused()))),
    }
    assert decide_pause(run, "op-1", None, NOW) == (SaveRun(run.model_copy(update=paused)),)


def slot_at(position: int) -> LogSlot:
    return LogSlot(position=position, records=(note("s"),), revision=5, at=later(50), claim_id="claim-a")


LAST_SLOTS = [
    pytest.param(None, 3, EARLIER, 2, id="nothing appended, no slot"),
    pytest.param(slot_at(2), 3, EARLIER, 2, id="nothing appended"),
    pytest.param(slot_at(3), 4, (), 0, id="one append"),
    pytest.param(slot_at(6), 7, (), 0, id="four appends"),
]


@pytest.mark.parametrize(("last", "position", "unsealed", "recoveries"), LAST_SLOTS)
def test_a_pause_of_a_running_run_takes_the_slot_that_its_owner_would_write_next(
    last: LogSlot | None, position: int, unsealed: tuple[Transition, ...], recoveries: int
) -> None:
    run = running_run(recoveries=2)
    paused = {
        "state": Paused(),
        "paused_from": Running(),
        "revision": 6,
        "operations": ("op-1",),
        "claim": None,
        "due_at": None,
        "recoveries": recoveries,
        "tail": Tail(position=position + 1, records=()),
    }
    slot = LogSlot(position=position, records=(*unsealed, moved(run, Paused())), revision=6, at=NOW)
    assert decide_pause(run, "op-1", last, NOW) == (
        SaveRun(run.model_copy(update=paused)),
        PutSlot(NAMESPACE, RUN_ID, slot),
    )


@pytest.mark.parametrize(("last", "position", "unsealed", "recoveries"), LAST_SLOTS)
def test_a_cancel_of_a_running_run_takes_the_slot_that_its_owner_would_write_next(
    last: LogSlot | None, position: int, unsealed: tuple[Transition, ...], recoveries: int
) -> None:
    run = running_run(recoveries=2, watched=True)
    cancelled = {
        "state": Cancelled(),
        "revision": 6,
        "operations": ("op-1",),
        "claim": None,
        "due_at": NOW,
        "duties": ("tell_watchers", "cancel_children"),
        "recoveries": recoveries,
        "tail": Tail(position=position + 1, records=()),
    }
    slot = LogSlot(position=position, records=(*unsealed, moved(run, Cancelled(), "ordered twice")), revision=6, at=NOW)
    assert decide_cancel(run, "op-1", "ordered twice", last, NOW) == (
        SaveRun(run.model_copy(update=cancelled)),
        PutSlot(NAMESPACE, RUN_ID, slot),
    )


@pytest.mark.parametrize("status", ["scheduled", "queued", "awaiting_retry", "stalled", "paused", *PARKED])
def test_a_cancel_is_one_write_that_leaves_what_is_to_be_done_about_it(status: Status) -> None:
    run = run_in(EXAMPLES[status], watched=True, due_at=later(500), paused_from=Queued(reason="new"), **WAITING)
    cancelled = {
        "state": Cancelled(),
        "revision": 6,
        "operations": ("op-1",),
        "due_at": NOW,
        "duties": ("tell_watchers", "cancel_children"),
        "waits": (),
        "seen_seq": 0,
        "open_child_waits": 0,
        "paused_from": None,
        "tail": Tail(position=3, records=(*EARLIER, moved(run, Cancelled(), "ordered twice"))),
    }
    assert decide_cancel(run, "op-1", "ordered twice", None, NOW) == (SaveRun(run.model_copy(update=cancelled)),)


def test_a_pause_that_overflows_the_tail_seals_it() -> None:
    run = run_in(Queued(reason="new"), tail=Tail(position=3, records=(note("x" * 1_900),)))
    save, put = decide_pause(run, "op-1", None, NOW)
    assert saved(save).tail == Tail(position=4, records=())
    slot = LogSlot(position=3, records=(note("x" * 1_900), moved(run, Paused())), revision=6, at=NOW)
    assert put == PutSlot(NAMESPACE, RUN_ID, slot)


@pytest.mark.parametrize("status", ["queued", "running", "paused"])
@pytest.mark.parametrize(("sleep", "key"), [(None, "*"), ("nap", "nap"), ("another", "another")])
def test_a_run_that_may_be_in_a_sleep_finds_its_wake_up_later(status: str, sleep: str | None, key: str) -> None:
    run = example(status).model_copy(update={"inbox_seq": 4})
    assert decide_wake_up(run, "op-1", sleep, NOW) == (
        SaveRun(run.model_copy(update={"inbox_seq": 5, "operations": ("op-1",)})),
        PutMessage(NAMESPACE, RUN_ID, Message(seq=5, at=NOW, kind="wakeup", key=key)),
    )


@pytest.mark.parametrize("sleep", [None, "nap"])
def test_a_parked_run_is_woken_from_its_sleep_in_the_same_write(sleep: str | None) -> None:
    save, put = decide_wake_up(example("awaiting_event"), "op-1", sleep, NOW)
    run = saved(save)
    assert (run.state, run.inbox_seq, run.operations) == (Queued(reason="wakeup_early"), 1, ("op-1",))
    assert isinstance(put, PutMessage)


NOT_THAT_SLEEP = [
    ((NAP,), "rest", " named rest"),
    ((Wait(kind="timer", key="nap", ordinal=0, deadline_at=later(500)),), None, ""),
    ((Wait(kind="event", key="nap", ordinal=0),), "nap", " named nap"),
]


@pytest.mark.parametrize(("waits", "sleep", "named"), NOT_THAT_SLEEP)
def test_a_run_that_is_parked_on_something_else_cannot_be_woken(waits: tuple[Wait, ...], sleep: str | None, named: str) -> None:
    with pytest.raises(IllegalTransition) as refused:
        decide_wake_up(run_in(Sleeping(wakeup_at=later(500)), waits=waits), "op-1", sleep, NOW)
    assert refused.value.detail == (f"run {RUN_ID} is sleeping and in no `run.sleep`{named}; there is nothing to wake it from")
    assert refused.value.fields == {"run_id": RUN_ID, "from_status": "sleeping", "to_status": "queued"}


def test_waits_that_were_collapsed_into_one_may_be_any_sleep() -> None:
    run = run_in(Sleeping(wakeup_at=later(500)), waits=(Wait(kind="sleep", key="*", ordinal=0, deadline_at=later(500)),))
    save, _ = decide_wake_up(run, "op-1", "rest", NOW)
    assert saved(save).state == Queued(reason="wakeup_early")


@pytest.mark.parametrize("state", [Stalled(reason="diverged"), EXAMPLES["awaiting_retry"], EXAMPLES["completed"]])
def test_a_run_that_is_not_under_way_cannot_be_woken(state: RunState) -> None:
    with pytest.raises(IllegalTransition, match="only a run that is under way can be woken from a `run.sleep`"):
        decide_wake_up(run_in(state), "op-1", None, NOW)
