"""Following up the end of a run with a table that fails, servers that die, and others that do the same."""

import pytest

from aiki_push.adapters.storage.table import Table
from aiki_push.domain.errors import StorageUnavailable
from aiki_push.domain.values import RunId
from aiki_push.ports.wakeups import Hint
from aiki_push.server.attention.sweep import SweepPlan, sweep
from aiki_push.testing import FakeClock, FaultyTable
from tests.integration.interruptions import Killed, kill, leave_alone, lose, meet, nth
from tests.integration.waiting_runs import end, inbox, numbered, parents
from tests.local_system import NAMESPACE, LocalSystem

AT_EVERY_ACCESS = 9
"""Of a follow-up with two watchers: the run, the watchers, each one's header and transaction, that none are left, and settling it."""


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def faulty(table: Table) -> FaultyTable:
    return FaultyTable(table)


@pytest.fixture
def system(faulty: FaultyTable, clock: FakeClock) -> LocalSystem:
    return LocalSystem(faulty, clock=clock)


@pytest.fixture
def other(table: Table, clock: FakeClock) -> LocalSystem:
    """Another server, on a table without faults."""
    return LocalSystem(table, clock=clock)


def ended_child(system: LocalSystem, number: int) -> tuple[RunId, list[RunId]]:
    """A run that has ended, and two that wait to be told. Different numbers give different runs."""
    child = 100 * number
    both = parents(system, 2, child=child)
    end(system, numbered(child))
    return numbered(child), both


def is_told_once(system: LocalSystem, child: RunId, both: list[RunId]) -> bool:
    """Each of both, and nothing is left to do."""
    run = system.run(child)
    told = [(len(inbox(system, parent)), system.run(parent).state.status) for parent in both]
    watchers = system.store.watchers(NAMESPACE, child, limit=1)
    return (told, watchers, run.duties, run.due_at) == ([(1, "queued")] * 2, (), (), None)


@pytest.mark.parametrize("is_written", [False, True], ids=["before a write", "after a write"])
def test_where_a_server_dies_at_a_write_another_goes_on_and_everybody_is_told_once(
    faulty: FaultyTable, system: LocalSystem, other: LocalSystem, clock: FakeClock, is_written: bool
) -> None:
    for place in range(1, 4):
        child, both = ended_child(other, place)
        if is_written:
            faulty.after_write = nth(place, kill)
        else:
            faulty.before_write = nth(place, kill)
        with pytest.raises(Killed):
            system.attention.advance(NAMESPACE, child)
        leave_alone(faulty)
        clock.advance(1)
        other.attention.advance(NAMESPACE, child)
        assert is_told_once(other, child, both)


def test_a_lost_answer_of_the_table_tells_nobody_twice(faulty: FaultyTable, system: LocalSystem, other: LocalSystem) -> None:
    for place in range(1, 4):
        child, both = ended_child(other, place)
        faulty.after_write = nth(place, lose)
        system.attention.advance(NAMESPACE, child)
        assert is_told_once(other, child, both)


def test_a_doubled_hint_tells_nobody_twice(system: LocalSystem, clock: FakeClock) -> None:
    child, both = ended_child(system, 1)
    for _ in range(3):
        system.attention.handle(Hint(namespace=NAMESPACE, run_id=child, due_at=clock.now()))
    assert is_told_once(system, child, both)


def test_two_servers_that_follow_up_at_once_tell_everybody_once_wherever_they_meet(
    faulty: FaultyTable, system: LocalSystem, other: LocalSystem
) -> None:
    met: list[int] = []
    for place in range(1, AT_EVERY_ACCESS + 2):
        child, both = ended_child(other, place)

        def overtake(_: object, child: RunId = child, place: int = place) -> None:
            met.append(place)
            other.attention.advance(NAMESPACE, child)

        meet(faulty, nth(place, overtake))
        system.attention.advance(NAMESPACE, child)
        leave_alone(faulty)
        assert is_told_once(other, child, both)
    assert met == list(range(1, AT_EVERY_ACCESS + 1))


@pytest.mark.parametrize("place", range(1, AT_EVERY_ACCESS + 1))
def test_an_outage_puts_the_follow_up_off_and_the_sweep_makes_up_for_lost_hints(
    faulty: FaultyTable, system: LocalSystem, other: LocalSystem, clock: FakeClock, place: int
) -> None:
    child, both = ended_child(other, 1)
    ended_at = clock.now()

    def fail_for_good(_: object) -> None:
        meet(faulty, lose)
        raise StorageUnavailable("throttled")

    meet(faulty, nth(place, fail_for_good))
    assert not system.attention.advance_safely(NAMESPACE, child)
    leave_alone(faulty)
    assert clock.now() - ended_at > 5_000  # the store has tried again for so long

    assert sweep(system.context, system.attention, SweepPlan(lookahead_ms=0)).failed == 0
    assert is_told_once(other, child, both)


def test_a_follow_up_that_failed_is_tried_again_later_and_keeps_the_sweep_from_nothing(
    faulty: FaultyTable, system: LocalSystem, other: LocalSystem, clock: FakeClock
) -> None:
    child, both = ended_child(other, 1)

    def fail_transactions(writes: object) -> None:
        if isinstance(writes, list) and len(writes) > 1:
            raise StorageUnavailable("throttled")

    faulty.before_write = fail_transactions
    assert not system.attention.advance_safely(NAMESPACE, child)
    run = system.run(child)
    assert (run.duties, run.due_at, run.advance_errors) == (("tell_watchers",), clock.now() + 5_000, 1)
    leave_alone(faulty)
    clock.advance(5_000)
    system.attention.advance(NAMESPACE, child)
    assert is_told_once(other, child, both)
