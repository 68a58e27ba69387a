"""The runs that a cancelled run had started are cancelled too, and theirs; nothing else is."""

from collections.abc import Sequence

import pytest

from aiki_push.adapters.storage import keys
from aiki_push.adapters.storage.table import Always, Delete, Put, Table
from aiki_push.domain.errors import RevisionConflict
from aiki_push.domain.run_states import Cancelled, Status
from aiki_push.domain.values import RunId
from aiki_push.ports.api.calls import StartChild
from aiki_push.ports.api.checkpoints import Park, Yield
from aiki_push.ports.api.controls import CancelRun, PauseRun
from aiki_push.ports.api.runs import GetRun, StartReference, StartRun
from aiki_push.testing import FakeClock, FaultyTable
from tests.integration.interruptions import leave_alone, lose, meet, nth
from tests.integration.owners import Owner, claim, started
from tests.integration.waiting_runs import ENDS, FAR, end, inbox, numbered, parent_of, start_children, wait
from tests.local_system import NAMESPACE, LocalSystem

CHILD = numbered(1)


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


def cancel(system: LocalSystem, run_id: RunId) -> None:
    system.server.call(NAMESPACE, CancelRun(run_id=run_id, operation_id="cancel-1"))


def cancelled_parent(system: LocalSystem, *children: RunId) -> RunId:
    """A run that has started these and was cancelled; its follow-up is due."""
    parent = parent_of(system, *children).claimed.run.id
    cancel(system, parent)
    return parent


def statuses(system: LocalSystem, *run_ids: RunId) -> Sequence[Status]:
    return [system.run(run_id).state.status for run_id in run_ids]


def is_settled(system: LocalSystem, run_id: RunId) -> bool:
    run = system.run(run_id)
    return (run.duties, run.due_at) == ((), None)


@pytest.mark.parametrize("status", ["queued", "running", "paused", *ENDS])
def test_a_child_in_any_state_ends_with_its_parent_and_one_that_has_ended_stays_as_it_is(
    system: LocalSystem, status: Status
) -> None:
    parent = parent_of(system, CHILD).claimed.run.id
    if status == "paused":
        system.server.call(NAMESPACE, PauseRun(run_id=CHILD, operation_id="pause-1"))
    elif status == "running":
        claim(system, CHILD)
    elif status != "queued":
        end(system, CHILD, ENDS[status])
    cancel(system, parent)
    assert statuses(system, CHILD) == [status]  # not in the request that cancelled the parent
    system.attention.advance(NAMESPACE, parent)
    assert statuses(system, CHILD) == [status if status in ("completed", "failed") else "cancelled"]
    assert is_settled(system, parent)


def test_a_child_says_why_it_was_cancelled_and_a_repetition_changes_nothing(system: LocalSystem) -> None:
    parent = cancelled_parent(system, CHILD)
    for _ in range(2):
        system.attention.advance(NAMESPACE, parent)
    view = system.server.call(NAMESPACE, GetRun(run_id=CHILD))
    explanation = f"run {parent}, which had started it, was cancelled"
    assert (view.state, view.explanation, view.revision) == (Cancelled(), explanation, 1)


def test_children_of_many_checkpoints_segments_and_generations_end(system: LocalSystem) -> None:
    parent = parent_of(system, *map(numbered, range(1, 25)))
    for number in range(5):
        parent.append(started(f"{number}" * 250_000))  # so that the log is longer than what is read of it at once
    start_children(parent, *map(numbered, range(25, 30)))
    parent.send(parent.checkpoint(started("a"), end=Park(waits=(wait("sleep", "pause", FAR),), seen_seq=0)))
    grandparent_id, parent_id = parent.claimed.run.id, numbered(3)
    start_children(Owner(system, claim(system, parent_id)), numbered(100))
    cancel(system, grandparent_id)
    system.attention.advance(NAMESPACE, grandparent_id)
    assert set(statuses(system, *map(numbered, range(1, 30)))) == {"cancelled"}
    assert is_settled(system, grandparent_id)
    assert statuses(system, numbered(100)) == ["queued"]
    system.attention.advance(NAMESPACE, parent_id)
    assert statuses(system, numbered(100)) == ["cancelled"]
    assert is_settled(system, parent_id)


def test_a_run_that_was_only_found_by_its_reference_goes_on(system: LocalSystem) -> None:
    request = StartRun(run_id=CHILD, workflow="w", version="1", input={"a": 1}, reference=StartReference(id="shared"))
    system.server.call(NAMESPACE, request)
    owner = Owner(system, claim(system, system.server.call(NAMESPACE, StartRun(workflow="w", version="1")).id))
    assert start_children(owner, numbered(2), reference="shared") == (CHILD,)
    cancel(system, owner.claimed.run.id)
    system.attention.advance(NAMESPACE, owner.claimed.run.id)
    assert statuses(system, CHILD) == ["queued"]
    assert is_settled(system, owner.claimed.run.id)


def test_a_child_that_is_gone_is_no_longer_waited_for(system: LocalSystem) -> None:
    parent = cancelled_parent(system, CHILD, numbered(2))
    system.table.write([Delete(keys.header(NAMESPACE, CHILD))], token="gone")
    system.attention.advance(NAMESPACE, parent)
    assert statuses(system, numbered(2)) == ["cancelled"]
    assert is_settled(system, parent)


def test_a_child_that_cannot_be_read_keeps_no_other_going_and_is_cancelled_once_it_can(
    system: LocalSystem, clock: FakeClock
) -> None:
    parent = cancelled_parent(system, CHILD, numbered(2))
    key = keys.header(NAMESPACE, CHILD)
    header = system.table.get(key)
    assert header is not None
    system.table.write([Put({**header, "d": "{}"}, Always())], token="damage")
    assert system.attention.advance_safely(NAMESPACE, parent)
    assert statuses(system, numbered(2)) == ["cancelled"]
    run = system.run(parent)
    assert (run.duties, run.due_at) == (("cancel_children",), clock.now() + 1_000)

    system.table.write([Put(header, Always())], token="mend")
    clock.advance(1_000)
    system.attention.advance(NAMESPACE, parent)
    assert statuses(system, CHILD) == ["cancelled"]
    assert is_settled(system, parent)


def test_a_child_whose_owner_is_too_busy_is_told_to_stop_and_looked_at_until_it_has(
    faulty: FaultyTable, system: LocalSystem, other: LocalSystem, clock: FakeClock
) -> None:
    parent = cancelled_parent(system, CHILD)
    owner = Owner(other, claim(other, CHILD))

    def write_first(writes: object) -> None:
        if isinstance(writes, list) and len(writes) > 1:  # somebody is about to take the next slot
            owner.append(started(f"task-{owner.position}"))

    faulty.before_write = write_first
    system.attention.advance(NAMESPACE, parent)
    leave_alone(faulty)
    directive = other.run(CHILD).directive
    assert directive is not None
    assert (other.run(CHILD).state.status, directive.action) == ("running", "cancel")

    for delay_ms in (1_000, 2_000, 4_000):
        assert (system.run(parent).duties, system.run(parent).due_at) == (("cancel_children",), clock.now() + delay_ms)
        clock.advance(delay_ms)
        system.attention.advance(NAMESPACE, parent)
    assert other.run(CHILD).operations == (directive.operation_id,)
    owner.send(owner.checkpoint(end=Yield()))
    assert statuses(system, CHILD) == ["cancelled"]
    clock.advance(8_000)
    system.attention.advance(NAMESPACE, parent)
    assert is_settled(system, parent)


def test_a_child_that_is_being_created_while_its_parent_is_cancelled_is_cancelled_or_never_was(
    faulty: FaultyTable, system: LocalSystem, other: LocalSystem
) -> None:
    created, refused = 0, 0
    for place in range(1, 20):
        owner = Owner(system, claim(system, system.server.call(NAMESPACE, StartRun(workflow="w", version="1")).id))
        parent, child = owner.claimed.run.id, numbered(place)
        call = StartChild(key="child", ordinal=0, run_id=child, workflow="w", version="1")

        def overtake(_: object, parent: RunId = parent) -> None:
            cancel(other, parent)

        meet(faulty, nth(place, overtake))
        try:
            system.server.call(NAMESPACE, owner.checkpoint().model_copy(update={"calls": (call,)}))
        except RevisionConflict:
            refused += 1
        else:
            created += 1
            leave_alone(faulty)
            cancel(other, parent)
        leave_alone(faulty)
        other.attention.advance(NAMESPACE, parent)
        assert is_settled(other, parent)
        living = other.store.load_many(NAMESPACE, [child])
        assert [run.state.status for run in living] in ([], ["cancelled"])
    assert created > 0
    assert refused > 0


def test_the_parent_of_a_cancelled_run_is_told_though_its_children_still_run(
    faulty: FaultyTable, system: LocalSystem, other: LocalSystem
) -> None:
    grandparent = parent_of(system, CHILD).claimed.run.id
    owner = Owner(system, claim(system, CHILD))
    start_children(owner, numbered(2))
    busy = Owner(other, claim(other, numbered(2)))
    cancel(system, CHILD)

    def write_first(writes: object) -> None:
        if isinstance(writes, list) and any("L#" in write.key.sk for write in writes):
            busy.append(started(f"task-{busy.position}"))

    faulty.before_write = write_first
    system.attention.advance(NAMESPACE, CHILD)
    leave_alone(faulty)
    assert [message.key for message in inbox(system, grandparent)] == [CHILD]
    assert system.run(CHILD).duties == ("cancel_children",)


@pytest.mark.parametrize("place", range(1, 8))
def test_a_lost_answer_of_the_table_cancels_all_the_same(faulty: FaultyTable, system: LocalSystem, place: int) -> None:
    parent = cancelled_parent(system, CHILD, numbered(2), numbered(3))
    claim(system, numbered(2))
    faulty.after_write = nth(place, lose)
    system.attention.advance(NAMESPACE, parent)
    assert set(statuses(system, CHILD, numbered(2), numbered(3))) == {"cancelled"}
    assert is_settled(system, parent)
