"""Starts with a delay: counted by the server's clock, from creation; nobody gets the run before, and everybody after."""

import pytest

from aiki_push.adapters.storage.table import Table
from aiki_push.domain.durations import MAX_DURATION_MS
from aiki_push.domain.log_records import Transition
from aiki_push.domain.run_states import Queued, Scheduled
from aiki_push.domain.values import DurationMs, RunId, TimestampMs
from aiki_push.ports.api.claims import ClaimRun, ClaimRuns, NotClaimed
from aiki_push.ports.api.endpoints import WorkflowVersionField
from aiki_push.ports.api.runs import RunView, StartOptions, StartRun
from aiki_push.ports.wakeups import MAX_HINT_DELAY_MS, Hint
from aiki_push.server.attention.sweep import SweepPlan, sweep
from aiki_push.testing import FAKE_NOW, FakeClock
from tests.integration.owners import claim
from tests.local_system import NAMESPACE, LocalSystem

VERSION = WorkflowVersionField(name="w", version="1")


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def system(table: Table, clock: FakeClock) -> LocalSystem:
    return LocalSystem(table, clock=clock)


def start(system: LocalSystem, delay_ms: int, run_id: RunId | None = None) -> RunView:
    options = StartOptions(delay_ms=DurationMs(delay_ms))
    return system.server.call(NAMESPACE, StartRun(workflow="w", version="1", options=options, run_id=run_id))


def offered(system: LocalSystem) -> list[RunId]:
    return [run.run_id for run in system.publisher.offered]


@pytest.mark.parametrize("delay_ms", [1, 60_000, MAX_DURATION_MS])
def test_a_delayed_run_is_scheduled_from_its_creation_on(system: LocalSystem, delay_ms: int) -> None:
    view = start(system, delay_ms)
    due_at = FAKE_NOW + delay_ms
    assert (view.state, view.revision, view.created_at, view.due_at) == (Scheduled(scheduled_at=due_at), 0, FAKE_NOW, due_at)


def test_nobody_gets_a_delayed_run_before_its_time(system: LocalSystem, clock: FakeClock) -> None:
    run_id = start(system, 10_000).id
    clock.advance(9_999)
    system.attention.advance(NAMESPACE, run_id)
    pull = ClaimRuns(request_id="r", executor="e", workflows=(VERSION,), limit=10)
    assert system.server.call(NAMESPACE, pull).claims == ()
    assert system.server.call(NAMESPACE, ClaimRun(run_id=run_id, claim_id="c", executor="e")) == NotClaimed(reason="not_queued")
    assert (system.run(run_id).state.status, offered(system)) == ("scheduled", [])


@pytest.mark.parametrize("late_ms", [0, 3_000])
def test_a_delayed_run_is_ready_since_its_time_however_late_that_is_seen(
    system: LocalSystem, clock: FakeClock, late_ms: int
) -> None:
    run_id = start(system, 10_000).id
    clock.advance(10_000 + late_ms)
    system.attention.advance(NAMESPACE, run_id)
    run = system.run(run_id)
    assert (run.state, run.revision, run.ready_at, run.due_at) == (
        Queued(reason="new"),
        1,
        FAKE_NOW + 10_000,
        FAKE_NOW + 10_000 + late_ms,
    )
    record = system.records(run_id)[-1]
    assert record == Transition(at=clock.now(), origin="scheduled", state=Queued(reason="new"), revision=1, attempts=1)
    system.attention.advance(NAMESPACE, run_id)
    assert offered(system) == [run_id]
    assert claim(system, run_id).run.revision == 2


@pytest.mark.parametrize(
    ("delay_ms", "is_hinted"), [(1, True), (MAX_HINT_DELAY_MS, True), (MAX_HINT_DELAY_MS + 1, False), (MAX_DURATION_MS, False)]
)
def test_a_hint_is_sent_for_a_delay_of_up_to_15_minutes(system: LocalSystem, delay_ms: int, is_hinted: bool) -> None:
    run_id = start(system, delay_ms).id
    expected = [Hint(namespace=NAMESPACE, run_id=run_id, due_at=TimestampMs(FAKE_NOW + delay_ms))] if is_hinted else []
    assert system.wakeups.hints == expected


def test_a_longer_delay_is_kept_by_the_sweep(system: LocalSystem, clock: FakeClock) -> None:
    run_id = start(system, 3_600_000).id
    clock.advance(3_600_000 - 60_000)
    sweep(system.context, system.attention, SweepPlan())
    [hint] = system.wakeups.hints
    assert (hint.run_id, hint.due_at) == (run_id, FAKE_NOW + 3_600_000)
    clock.set(hint.due_at)
    for _ in ("becomes ready", "is offered"):
        system.attention.handle(hint)
    assert offered(system) == [run_id]


def test_a_delayed_run_whose_hints_are_all_lost_is_found_by_the_sweep(system: LocalSystem, clock: FakeClock) -> None:
    run_id = start(system, 1_000).id
    system.wakeups.hints.clear()
    clock.advance(1_000 + 5_001)
    sweep(system.context, system.attention, SweepPlan())
    assert system.run(run_id).state == Queued(reason="new")
    assert [hint.run_id for hint in system.wakeups.hints] == [run_id]


def test_a_repeated_delayed_start_is_the_same_start_and_does_not_begin_to_count_anew(
    system: LocalSystem, clock: FakeClock
) -> None:
    run_id = RunId("01JZZZZZZZZZZZZZZZZZZZZZZZ")
    first = start(system, 10_000, run_id)
    clock.advance(5_000)
    assert start(system, 10_000, run_id) == first
