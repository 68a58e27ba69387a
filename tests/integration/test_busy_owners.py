"""Owners that write faster than anyone can take their run away: they are told to stop, and do."""

from collections.abc import Callable, Sequence

import pytest

from aiki_push.adapters.storage.table import Table, Write
from aiki_push.domain.limits import Limits
from aiki_push.domain.log_records import RecordedError
from aiki_push.domain.run import Directive
from aiki_push.domain.run_states import AwaitingRetry, Running, RunState, SelfCause, Sleeping
from aiki_push.domain.values import DurationMs, TimestampMs
from aiki_push.ports.api.checkpoints import Appended, Ended, Fail, HandBack, Retry, SegmentEnd, Stall, Yield
from aiki_push.ports.api.claims import GetInbox, RefreshClaim, ReleaseClaim
from aiki_push.ports.api.runs import GetRun, ListRuns, RunView
from aiki_push.server.controls import FENCE_ROUNDS
from aiki_push.testing import FAKE_NOW, CountingTable, FakeClock, FaultyTable
from tests.integration.controls import call, cancel, nap, owned, pause, resume, transitions
from tests.integration.owners import FINISH, PARK, Owner, claim, completed, start, started
from tests.local_system import NAMESPACE, LocalSystem

LATER = TimestampMs(FAKE_NOW + 60_000)
ERROR = RecordedError(name="ValueError", message="the shelf is empty")
RETRY = Retry(cause=SelfCause(), error=ERROR, next_attempt_at=LATER)


class Busy:
    """A system whose only owner appends before every attempt to take its run away."""

    def __init__(self, table: Table) -> None:
        self.clock = FakeClock()
        self.counting = CountingTable(table)
        self.faulty = FaultyTable(self.counting)
        limits = Limits(claim_idle_timeout_ms=90_000)
        self.system = LocalSystem(self.faulty, clock=self.clock, limits=limits)
        self.owner = owned(self.system)
        self.run_id = self.owner.claimed.run.id
        self.faulty.before_write = self.race
        self.is_idle = False

    def race(self, writes: Sequence[Write]) -> None:
        """Appends are single writes, as directives are; a run is taken away by a transaction."""
        if len(writes) > 1 and not self.is_idle:
            self.owner.append(completed(f"task-{self.owner.position}"))

    def rest(self) -> None:
        """Stop racing."""
        self.is_idle = True


@pytest.fixture
def busy(table: Table) -> Busy:
    return Busy(table)


Control = Callable[[LocalSystem, str, str], RunView]
STOPS = [
    pytest.param(pause, Directive(action="pause", operation_id="op-1"), "paused", id="pause"),
    pytest.param(cancel, Directive(action="cancel", operation_id="op-1"), "cancelled", id="cancel"),
]
every_stop = pytest.mark.parametrize(("control", "directive", "status"), STOPS)


@every_stop
def test_an_owner_that_is_too_fast_keeps_its_run_and_gets_a_directive(
    busy: Busy, control: Control, directive: Directive, status: str
) -> None:
    view = control(busy.system, busy.run_id, "op-1")
    assert (view.state, view.revision, view.directive) == (Running(), 1, directive)
    assert busy.owner.position == FENCE_ROUNDS
    assert call(busy.system, GetInbox(run_id=busy.run_id, after=0)).directive == directive
    assert call(busy.system, GetRun(run_id=busy.run_id)) == view
    assert [run.directive for run in call(busy.system, ListRuns()).runs] == [directive]


@every_stop
def test_a_repeated_request_writes_nothing_while_the_directive_waits_nor_when_it_was_obeyed(
    busy: Busy, control: Control, directive: Directive, status: str
) -> None:
    view = control(busy.system, busy.run_id, "op-1")
    busy.rest()
    busy.counting.reset()
    assert control(busy.system, busy.run_id, "op-1") == view
    busy.owner.send(busy.owner.checkpoint(end=Yield()))
    busy.counting.reset()
    assert control(busy.system, busy.run_id, "op-1").state.status == status
    counts = busy.counting.reset()
    assert (counts.single_writes, counts.transactions) == (0, 0)


@every_stop
def test_a_yield_becomes_what_was_directed(busy: Busy, control: Control, directive: Directive, status: str) -> None:
    control(busy.system, busy.run_id, "op-1")
    yielding = busy.owner.checkpoint(end=Yield())
    assert busy.owner.send(yielding) == Ended(status=status, revision=2)
    assert busy.owner.send(yielding) == Ended(status=status, revision=2)
    assert transitions(busy.system, busy.run_id) == ["queued", "running", status]


@every_stop
def test_a_hand_back_becomes_what_was_directed(busy: Busy, control: Control, directive: Directive, status: str) -> None:
    control(busy.system, busy.run_id, "op-1")
    busy.rest()
    assert busy.owner.send(busy.owner.checkpoint(end=HandBack())) == Ended(status=status, revision=2)
    assert transitions(busy.system, busy.run_id) == ["queued", "running", status]


@every_stop
@pytest.mark.parametrize(
    ("end", "parked"),
    [
        (nap(LATER), Sleeping(wakeup_at=LATER)),
        (RETRY, AwaitingRetry(cause=SelfCause(), next_attempt_at=LATER)),
    ],
)
def test_the_state_that_an_owner_came_to_is_entered_and_then_left_as_directed(
    busy: Busy, control: Control, directive: Directive, status: str, end: SegmentEnd, parked: RunState
) -> None:
    control(busy.system, busy.run_id, "op-1")
    assert busy.owner.send(busy.owner.checkpoint(end=end)) == Ended(status=status, revision=3)
    assert transitions(busy.system, busy.run_id) == ["queued", "running", parked.status, status]
    if status == "paused":
        assert busy.system.run(busy.run_id).paused_from == parked
        view = resume(busy.system, busy.run_id)
        assert (view.state, view.due_at) == (parked, LATER)


@every_stop
@pytest.mark.parametrize("end", [FINISH, Fail(cause=SelfCause(), error=ERROR)])
def test_an_end_wins_over_a_directive(busy: Busy, control: Control, directive: Directive, status: str, end: SegmentEnd) -> None:
    control(busy.system, busy.run_id, "op-1")
    assert busy.owner.send(busy.owner.checkpoint(end=end)) == Ended(status=end.to, revision=2)
    run = busy.system.run(busy.run_id)
    assert (run.directive, run.operations) == (None, ("op-1",))


def test_a_stall_wins_over_a_pause_and_not_over_a_cancel(table: Table) -> None:
    stall = Stall(reason="diverged", explanation="task b is new")
    for control, states in ((pause, ["stalled"]), (cancel, ["stalled", "cancelled"])):
        busy = Busy(table)
        control(busy.system, busy.run_id)
        busy.owner.send(busy.owner.checkpoint(end=stall))
        assert transitions(busy.system, busy.run_id)[2:] == states


@every_stop
def test_a_recovery_becomes_what_was_directed(busy: Busy, control: Control, directive: Directive, status: str) -> None:
    control(busy.system, busy.run_id, "op-1")
    busy.rest()
    busy.clock.advance(90_000)
    busy.system.attention.advance(NAMESPACE, busy.run_id)
    assert transitions(busy.system, busy.run_id) == ["queued", "running", status]


@every_stop
def test_a_refresh_keeps_the_claim_and_the_directive(busy: Busy, control: Control, directive: Directive, status: str) -> None:
    control(busy.system, busy.run_id, "op-1")
    call(busy.system, RefreshClaim(run_id=busy.run_id, token=busy.owner.token))
    assert busy.system.run(busy.run_id).directive == directive
    assert isinstance(busy.owner.append(completed("more")), Appended)


@every_stop
def test_a_release_becomes_what_was_directed(table: Table, control: Control, directive: Directive, status: str) -> None:
    """An owner that has appended nothing is kept by its refreshes."""
    faulty = FaultyTable(table)
    system = LocalSystem(faulty, clock=FakeClock())
    owner = Owner(system, claim(system, start(system)))
    run_id = owner.claimed.run.id

    def refresh(writes: Sequence[Write]) -> None:
        if len(writes) > 1:
            system.clock.sleep(DurationMs(1))
            call(system, RefreshClaim(run_id=run_id, token=owner.token))

    faulty.before_write = refresh
    assert control(system, run_id, "op-1").directive == directive
    call(system, ReleaseClaim(run_id=run_id, token=owner.token))
    assert transitions(system, run_id) == ["queued", "running", status]


def test_a_cancel_replaces_a_pause_and_both_are_remembered(busy: Busy) -> None:
    pause(busy.system, busy.run_id, "op-1")
    view = cancel(busy.system, busy.run_id, "op-2", "ordered twice")
    assert view.directive == Directive(action="cancel", operation_id="op-2", explanation="ordered twice")
    assert pause(busy.system, busy.run_id, "op-1") == view
    busy.owner.send(busy.owner.checkpoint(started("a"), end=PARK))
    after = call(busy.system, GetRun(run_id=busy.run_id))
    assert (after.state.status, after.explanation, after.directive) == ("cancelled", "ordered twice", None)


def test_a_run_that_was_not_raced_for_long_is_simply_taken(busy: Busy) -> None:
    attempts = iter(range(FENCE_ROUNDS))

    def race(writes: Sequence[Write]) -> None:
        if len(writes) > 1 and next(attempts) < FENCE_ROUNDS - 1:
            busy.owner.append(completed("a"))

    busy.faulty.before_write = race
    assert pause(busy.system, busy.run_id).state.status == "paused"
    assert busy.owner.position == FENCE_ROUNDS - 1
