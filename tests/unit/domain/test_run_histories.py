"""Whatever happens to a run, in whatever order: its log loses nothing, gains nothing twice, and agrees with its header."""

from collections.abc import Callable

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from aiki_push.domain.advances import NeedsChange, decide_delay, need_of
from aiki_push.domain.changes import Change
from aiki_push.domain.checkpoints import (
    CompleteRun,
    FailRun,
    ParkRun,
    RunEnd,
    StallRun,
    YieldRun,
    decide_end,
    decide_hand_back,
    is_repeated,
)
from aiki_push.domain.claims import (
    AlreadyMine,
    Claimer,
    NotAvailable,
    Owner,
    Recovery,
    decide_claim,
    decide_recovery,
    decide_refresh,
    decide_release,
)
from aiki_push.domain.controls import decide_requeue
from aiki_push.domain.errors import IllegalTransition, RevisionConflict
from aiki_push.domain.limits import Limits
from aiki_push.domain.log_records import Transition
from aiki_push.domain.offers import decide_lease, decide_next_offer
from aiki_push.domain.run import RunOptions
from aiki_push.domain.run_states import PARKED, TERMINAL, SelfCause, Status
from aiki_push.domain.starts import Start, decide_start
from aiki_push.domain.values import Inline, TimestampMs
from aiki_push.domain.waits import Wait
from tests.unit.domain.controlled_run import ControlledRun
from tests.unit.domain.run_examples import BOOM, INPUT_HASH, NAMESPACE, RUN_ID, json_bytes, later
from tests.unit.domain.run_history import Executor, RunHistory

LIMITS = Limits(claim_idle_timeout_ms=1_000, max_age_ms=100_000, max_recoveries=3)

letters = st.sampled_from([0, 0, 1, 300, 700, 1_100])
"""How many two-byte letters a record or value holds: nothing, some of a tail, more than a tail."""

ENDS: list[tuple[RunEnd, Status]] = [
    (ParkRun(waits=(Wait(kind="sleep", key="k", ordinal=0, deadline_at=later(9)),), seen_seq=0), "sleeping"),
    (ParkRun(waits=(Wait(kind="timer", key="k", ordinal=0, deadline_at=later(99_000)),), seen_seq=0), "sleeping"),
    (ParkRun(waits=(Wait(kind="event", key="k", ordinal=0, deadline_at=later(9_000)),), seen_seq=0), "awaiting_event"),
    (ParkRun(waits=(Wait(kind="child", key="k", ordinal=0, deadline_at=later(0)),), seen_seq=0), "awaiting_child_workflow"),
    (ParkRun(waits=(Wait(kind="task_retry", key="k", ordinal=0, deadline_at=later(5_000)),), seen_seq=0), "awaiting_task_retry"),
    (StallRun(reason="diverged", explanation="é" * 700), "stalled"),
    (StallRun(reason="unknown_record", explanation="no"), "stalled"),
    (CompleteRun(output=Inline(value="é" * 1_100)), "completed"),
    (FailRun(cause=SelfCause(), error=BOOM), "failed"),
]
indexes = st.integers(0, 9)


class AnyHistory(ControlledRun, RuleBasedStateMachine):
    """Every way in which a run, its executors, their appends, and those who control it from outside can go on."""

    def __init__(self) -> None:
        RuleBasedStateMachine.__init__(self)
        ControlledRun.__init__(self)

    @initialize(size=letters)
    def start(self, size: int) -> None:
        start = Start(NAMESPACE, RUN_ID, "order", "v1", Inline(value="é" * size), INPUT_HASH, RunOptions())
        self.table.commit(*decide_start(start, self.now))

    @precondition(lambda self: self.is_in("queued"))
    @rule()
    def claim(self) -> None:
        claimer = Claimer(self.name(), "worker", self.run.revision)
        decision = decide_claim(self.run, claimer, self.now, LIMITS)
        assert isinstance(decision, tuple)
        self.write(decision, enters="running")
        owner = Owner(claimer.claim_id, self.run.revision)
        self.executors.append(Executor(owner, self.run.tail.records, self.run.tail.position))
        assert decide_claim(self.run, claimer, self.now, LIMITS) == AlreadyMine()
        assert decide_claim(self.run, Claimer("other", "worker"), self.now, LIMITS) == NotAvailable(is_taken=True)

    @precondition(RunHistory.is_idle)
    @rule(size=letters, is_answered=st.booleans())
    def append(self, size: int, is_answered: bool) -> None:
        assert self.owner
        checkpoint = self.owner.checkpoint(self.name(), self.notes(size))
        put = self.owner.put(checkpoint, self.now)
        self.wire.append(put)
        if is_answered:
            self.write([put], *checkpoint.records)
            self.owner.go_on()
        else:
            self.owner.unanswered = checkpoint

    @precondition(lambda self: self.wire)
    @rule(index=indexes)
    def an_append_arrives(self, index: int) -> None:
        """For the first time, or once more, or after its sender lost the run."""
        put = self.wire[index % len(self.wire)]
        pending = self.owner.unanswered if self.owner else None
        if pending and put.slot.checkpoint_id == pending.checkpoint_id and not self.has_landed(pending):
            self.write([put], *pending.records)
        else:
            self.refuse([put])

    @precondition(lambda self: self.owner and self.owner.unanswered)
    @rule()
    def repeat_the_append(self) -> None:
        assert self.owner
        assert self.owner.unanswered
        put = self.owner.put(self.owner.unanswered, self.now)
        if self.has_landed(self.owner.unanswered):
            taken_by = self.refuse([put])
            assert taken_by
            assert taken_by.checkpoint_id == self.owner.unanswered.checkpoint_id
        else:
            self.write([put], *self.owner.unanswered.records)
        self.owner.go_on()

    @precondition(lambda self: self.owner)
    @rule(size=letters)
    def hand_back(self, size: int) -> None:
        assert self.owner
        unanswered = self.owner.unanswered
        checkpoint = self.owner.checkpoint(self.name(), self.notes(size))
        changes = decide_hand_back(self.run, checkpoint, self.now)
        if unanswered and self.has_landed(unanswered):
            taken_by = self.refuse(changes)
            assert taken_by
            assert taken_by.checkpoint_id == unanswered.checkpoint_id
            self.owner.go_on()
        else:
            self.write(changes, *checkpoint.records, enters=self.obeying("queued"))
            self.fruitless = 0
            assert is_repeated(self.run, checkpoint)

    @precondition(RunHistory.is_idle)
    @rule(ending=st.sampled_from(ENDS), size=letters)
    def end(self, ending: tuple[RunEnd, Status], size: int) -> None:
        assert self.owner
        end, status = ending
        checkpoint = self.owner.checkpoint(self.name(), self.notes(size))
        changes = decide_end(self.run, checkpoint, end, self.now, LIMITS)
        self.write(changes, *checkpoint.records, enters=self.ending_in(status))
        self.fruitless = 0
        assert is_repeated(self.run, checkpoint)

    @precondition(RunHistory.is_idle)
    @rule(size=letters)
    def give_up(self, size: int) -> None:
        assert self.owner
        checkpoint = self.owner.checkpoint(self.name(), self.notes(size))
        has_progressed = bool(checkpoint.records) or not self.owner.is_first
        self.fruitless = 0 if has_progressed else self.fruitless + (self.run.directive is None)
        is_looping = self.fruitless == LIMITS.max_recoveries and self.run.directive is None
        changes = decide_end(self.run, checkpoint, YieldRun(), self.now, LIMITS)
        self.write(changes, *checkpoint.records, enters="stalled" if is_looping else self.obeying("queued"))
        assert is_repeated(self.run, checkpoint)

    @precondition(RunHistory.is_idle)
    @rule()
    def release(self) -> None:
        assert self.owner
        if self.owner.is_first:
            self.write(decide_release(self.run, self.owner.owner, self.last, self.now), enters=self.obeying("queued"))
        else:
            with pytest.raises(IllegalTransition):
                decide_release(self.run, self.owner.owner, self.last, self.now)

    @precondition(lambda self: self.owner)
    @rule()
    def refresh(self) -> None:
        assert self.owner
        self.write(decide_refresh(self.run, self.owner.owner, self.now, LIMITS))

    def recovery(self) -> tuple[Change, ...]:
        at_tail = next((slot for slot in self.slots if slot.position == self.run.tail.position), None)
        return decide_recovery(self.run, Recovery(self.last, at_tail), self.now, LIMITS)

    @precondition(lambda self: self.owner)
    @rule(is_raced=st.booleans())
    def recover(self, is_raced: bool) -> None:
        """The owner falls silent; its last append may still arrive between the look at the log and the commit."""
        owner = self.owner
        assert owner
        self.now = TimestampMs(self.now + LIMITS.claim_idle_timeout_ms)
        changes = self.recovery()
        if is_raced and owner.unanswered and not self.has_landed(owner.unanswered):
            self.write([owner.put(owner.unanswered, self.now)], *owner.unanswered.records)
            taken_by = self.refuse(changes)
            assert taken_by
            assert taken_by.checkpoint_id == owner.unanswered.checkpoint_id
            self.write(self.recovery())
            return
        has_progressed = self.has_written(owner)
        self.fruitless = 0 if has_progressed else self.fruitless + 1
        is_looping = self.fruitless >= LIMITS.max_recoveries and self.run.directive is None
        self.write(changes, enters="stalled" if is_looping else self.obeying("queued"))
        owner.is_unaware = True

    @precondition(lambda self: any(one is not self.owner for one in self.executors))
    @rule(index=indexes, size=letters)
    def a_former_owner_goes_on(self, index: int, size: int) -> None:
        former = [one for one in self.executors if one is not self.owner]
        one = former[index % len(former)]
        checkpoint = one.checkpoint(self.name(), self.notes(size))
        writes: list[Callable[[], object]] = [
            lambda: decide_end(self.run, checkpoint, CompleteRun(output=Inline(value=1)), self.now, LIMITS),
            lambda: decide_hand_back(self.run, checkpoint, self.now),
            lambda: decide_refresh(self.run, one.owner, self.now, LIMITS),
            lambda: decide_release(self.run, one.owner, None, self.now),
        ]
        for write in writes:
            with pytest.raises(RevisionConflict):
                write()
        if one.is_unaware:
            assert self.refuse([one.put(checkpoint, self.now)])

    @precondition(lambda self: self.is_in(*PARKED))
    @rule()
    def wake(self) -> None:
        self.now = max(self.now, self.run.due_at or self.now)
        need = need_of(self.run, self.now, LIMITS)
        assert isinstance(need, NeedsChange)
        self.write(need.changes, enters="queued")

    @precondition(lambda self: self.is_in("queued"))
    @rule(size=letters)
    def offer(self, size: int) -> None:
        self.write(decide_lease(self.run, self.now, LIMITS))
        self.write(decide_next_offer(self.run, TimestampMs(self.now + 5), "é" * size, LIMITS))

    @precondition(lambda self: self.is_in("queued"))
    @rule()
    def grow_old(self) -> None:
        self.now = TimestampMs(max(self.now, self.run.due_at or 0) + LIMITS.max_age_ms)
        need = need_of(self.run, self.now, LIMITS)
        assert isinstance(need, NeedsChange)
        self.write(need.changes, enters="stalled")

    @precondition(lambda self: self.run.due_at is not None)
    @rule()
    def fail_to_advance(self) -> None:
        self.write(decide_delay(self.run, self.now))

    @precondition(lambda self: self.is_in("stalled"))
    @rule()
    def requeue(self) -> None:
        operation_id = self.name()
        self.write(decide_requeue(self.run, operation_id, self.now), enters="queued")
        self.fruitless = 0
        assert decide_requeue(self.run, operation_id, self.now) == ()

    @invariant()
    def slots_are_contiguous_and_the_tail_is_the_next_of_them_or_the_owners_first(self) -> None:
        position = self.run.tail.position
        assert [slot.position for slot in self.slots] == list(range(len(self.slots)))
        if position != len(self.slots):
            assert self.run.claim
            assert self.slots[position].claim_id == self.run.claim.claim_id

    @invariant()
    def the_tail_is_small(self) -> None:
        assert json_bytes(self.run.tail.records, self.run.tail.position) <= 2_048

    @invariant()
    def the_log_has_one_transition_a_revision_each_from_where_the_last_one_led(self) -> None:
        transitions = [record for record in self.log if isinstance(record, Transition)]
        statuses = [record.state.status for record in transitions]
        assert [record.revision for record in transitions] == list(range(self.run.revision + 1))
        assert [record.origin for record in transitions] == [None, *statuses[:-1]]
        assert (transitions[-1].state, transitions[-1].attempts) == (self.run.state, self.run.attempts)

    @invariant()
    def the_header_has_what_belongs_to_its_state(self) -> None:
        assert (self.run.claim is not None) == self.is_in("running")
        assert (self.run.ready_at is not None) == self.is_in("queued")
        origin = self.run.paused_from or self.run.state
        assert (self.run.waits != ()) == (origin.status in PARKED)
        assert (self.run.paused_from is not None) == self.is_in("paused")
        assert (self.run.due_at is None) == (self.is_in("stalled", "paused", *TERMINAL) and not self.run.duties)
        assert (self.run.duties != ()) == self.is_in("cancelled")
        assert self.run.directive is None or self.is_in("running")

    @invariant()
    def recoveries_and_fruitless_yields_are_those_since_the_log_last_grew(self) -> None:
        assert self.is_in("stalled") or self.run.recoveries == self.fruitless


TestRunHistories = AnyHistory.TestCase
TestRunHistories.settings = settings(max_examples=150, stateful_step_count=40, deadline=None)
