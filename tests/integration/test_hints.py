"""Hints that come early, late and in numbers: each is handled once, and none becomes two."""

import pytest

from aiki_push.adapters.storage.table import Table
from aiki_push.domain.run_states import Queued
from aiki_push.domain.values import DurationMs, RunId, TimestampMs
from aiki_push.ports.api.events import SendEvent
from aiki_push.ports.api.runs import StartOptions, StartRun
from aiki_push.ports.wakeups import Hint
from aiki_push.testing import FAKE_NOW, CountingTable, Counts, FakeClock
from tests.integration.waiting_runs import run_in
from tests.local_system import NAMESPACE, LocalSystem


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def counting(table: Table) -> CountingTable:
    return CountingTable(table)


@pytest.fixture
def system(counting: CountingTable, clock: FakeClock) -> LocalSystem:
    return LocalSystem(counting, clock=clock)


def delayed_run(system: LocalSystem) -> tuple[RunId, Hint]:
    """A run due ten seconds after FAKE_NOW, and the hint that was sent for it."""
    request = StartRun(workflow="w", version="1", options=StartOptions(delay_ms=DurationMs(10_000)))
    run_id = system.server.call(NAMESPACE, request).id
    (hint,) = system.wakeups.hints
    system.wakeups.hints.clear()
    return run_id, hint


def test_a_hint_that_is_early_by_a_second_is_waited_for(system: LocalSystem, clock: FakeClock) -> None:
    run_id, hint = delayed_run(system)
    clock.advance(9_000)
    system.attention.handle(hint)
    assert (clock.now(), system.run(run_id).state) == (FAKE_NOW + 10_000, Queued(reason="new"))


def test_a_hint_that_is_earlier_is_sent_again_and_nothing_is_read_for_it(
    system: LocalSystem, counting: CountingTable, clock: FakeClock
) -> None:
    _, hint = delayed_run(system)
    clock.advance(8_999)
    counting.reset()
    system.attention.handle(hint)
    assert (system.wakeups.hints, counting.counts, clock.slept_ms) == ([hint], Counts(), 0)


def test_a_hint_of_a_run_that_is_due_later_by_now_ends_there_since_that_has_a_hint_of_its_own(
    system: LocalSystem, clock: FakeClock
) -> None:
    run_id = run_in(system, "running")
    for _ in range(10):
        system.server.call(NAMESPACE, SendEvent(run_id=run_id, event="paid"))
    due_at = system.run(run_id).due_at
    assert due_at is not None
    assert Hint(namespace=NAMESPACE, run_id=run_id, due_at=due_at) in system.wakeups.hints
    system.wakeups.hints.clear()
    for _ in range(10):
        system.attention.handle(Hint(namespace=NAMESPACE, run_id=run_id, due_at=TimestampMs(clock.now() - 1)))
    assert system.wakeups.hints == []
