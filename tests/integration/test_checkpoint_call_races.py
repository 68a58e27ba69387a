"""Calls on other runs while these move: each is told of an end exactly once, and there is one run for one reference."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Literal

import pytest

from aiki_push.adapters.storage import keys
from aiki_push.adapters.storage.table import Delete, Table, Write
from aiki_push.domain.errors import StorageUnavailable
from aiki_push.domain.log_records import CallEnded
from aiki_push.domain.run import Directive
from aiki_push.domain.run_states import Running
from aiki_push.domain.values import RunId
from aiki_push.ports.api.checkpoints import Ended
from aiki_push.ports.api.claims import GetInbox, RefreshClaim
from aiki_push.ports.api.events import SendEvent
from aiki_push.ports.api.runs import StartReference, StartRun
from aiki_push.server.calls import FENCE_ROUNDS
from aiki_push.server.context import MAX_ROUNDS
from aiki_push.testing import FakeClock, FaultyTable
from tests.contracts.engines import table_of
from tests.integration.checkpoint_calls import calling, carry_out, child, control, ended, event, results
from tests.integration.controls import call, owned
from tests.integration.interruptions import Hook, leave_alone, meet, nth
from tests.integration.owners import FINISH, Owner, claim, completed, started
from tests.integration.test_races import ROUNDS, side_by_side
from tests.integration.waiting_runs import end, inbox, numbered, run_in
from tests.local_system import NAMESPACE, LocalSystem


@pytest.fixture
def faulty(table: Table) -> FaultyTable:
    return FaultyTable(table)


@pytest.fixture
def system(faulty: FaultyTable) -> LocalSystem:
    return LocalSystem(faulty, clock=FakeClock())


@pytest.fixture
def other(table: Table) -> LocalSystem:
    """Another server, on a table without faults."""
    return LocalSystem(table, clock=FakeClock())


def referred(system: LocalSystem, reference: str = "order 1") -> RunId:
    request = StartRun(workflow="w", version="1", input={"a": 1}, reference=StartReference(id=reference))
    return system.server.call(NAMESPACE, request).id


def ends_told(system: LocalSystem, owner: Owner) -> list[str]:
    """The runs of whose end the owner's run was told, in order."""
    return [message.key for message in inbox(system, owner.claimed.run.id) if message.kind == "child"]


def before_a_commit(number: int, action: Callable[[], object]) -> Hook:
    """A hook that does `action` before the transaction with this number."""
    hook = nth(number, lambda _: _done(action))
    return lambda writes: hook(writes) if isinstance(writes, Sequence) and len(writes) > 1 else None


def _done(action: Callable[[], object]) -> None:
    action()


AT_EVERY_ACCESS = 5
"""Of a link: the reference, the run that has it, the caller's header, and the commit; of an end: the run and the commit. And none."""


@pytest.mark.parametrize("place", range(1, AT_EVERY_ACCESS + 1))
def test_a_run_that_ends_while_it_is_linked_is_told_of_once(
    system: LocalSystem, other: LocalSystem, faulty: FaultyTable, place: int
) -> None:
    holder, owner = referred(other), owned(other)
    linker = Owner(system, owner.claimed)
    finish = partial(end, other, holder)
    asked = child(1, reference="order 1")
    meet(faulty, nth(place, lambda _: finish()))
    assert carry_out(linker, asked) == (ended(asked, "existing", holder),)
    leave_alone(faulty)
    is_over = system.run(holder).state.status == "completed"
    assert ends_told(system, linker) == ([holder] if is_over else [])
    if not is_over:
        finish()
    system.attention.advance(NAMESPACE, holder)
    assert ends_told(system, linker) == [holder]


@pytest.mark.parametrize("place", range(1, AT_EVERY_ACCESS + 1))
def test_a_run_that_is_linked_while_it_ends_tells_of_it_once(
    system: LocalSystem, other: LocalSystem, faulty: FaultyTable, place: int
) -> None:
    holder, linker = referred(other), owned(other)
    finisher = Owner(system, claim(other, holder))
    link = partial(carry_out, linker, child(1, reference="order 1"))
    hook = nth(place, lambda _: _done(link))
    meet(faulty, hook)
    assert isinstance(finisher.send(finisher.checkpoint(end=FINISH)), Ended)
    leave_alone(faulty)
    if not linker.sent:
        link()
    system.attention.advance(NAMESPACE, holder)
    assert ends_told(system, linker) == [holder]


engines = pytest.mark.parametrize(("engine", "rounds"), [("memory", ROUNDS), ("dynamodb", 15)])


@pytest.mark.timeout(180)
@engines
def test_whoever_links_to_a_run_while_it_ends_is_told_exactly_once(
    request: pytest.FixtureRequest, engine: str, rounds: int
) -> None:
    system = LocalSystem(table_of(engine, request))
    with ThreadPoolExecutor(2) as threads:
        for number in range(1, rounds + 1):
            reference = f"order {number}"
            parent, linker = owned(system), owned(system)
            carry_out(parent, child(number, reference=reference))
            finisher = Owner(system, claim(system, numbered(number)))
            finish = partial(finisher.send, finisher.checkpoint(end=FINISH))
            link = partial(linker.send, calling(linker, child(ROUNDS + number, reference=reference)))
            side_by_side(threads, finish, link)
            system.attention.advance(NAMESPACE, numbered(number))
            assert [ends_told(system, owner) for owner in (parent, linker)] == [[numbered(number)]] * 2
            run = system.run(numbered(number))
            assert (run.state.status, run.duties) == ("completed", ())


@pytest.mark.timeout(180)
@engines
def test_of_two_parents_with_one_reference_one_creates_the_child_and_both_are_told_of_its_end(
    request: pytest.FixtureRequest, engine: str, rounds: int
) -> None:
    system = LocalSystem(table_of(engine, request))
    with ThreadPoolExecutor(2) as threads:
        for number in range(0, 2 * rounds, 2):
            both = owned(system), owned(system)
            calls = [child(number + place, reference=f"order {number}") for place in range(2)]
            outcomes = side_by_side(threads, *(partial(carry_out, owner, one) for owner, one in zip(both, calls, strict=True)))
            assert sorted(str(outcome.result) for (outcome,) in outcomes) == ["created", "existing"]
            (created,) = {outcome.run_id for (outcome,) in outcomes}
            parent = next(owner for owner, (outcome,) in zip(both, outcomes, strict=True) if outcome.result == "created")
            assert system.run(created).parent == parent.claimed.run.id
            end(system, created)
            system.attention.advance(NAMESPACE, created)
            assert [ends_told(system, owner) for owner in both] == [[created]] * 2


def test_a_reference_that_is_taken_between_the_look_and_the_start_is_found(
    system: LocalSystem, other: LocalSystem, faulty: FaultyTable
) -> None:
    owner, holders = owned(system), list[RunId]()
    faulty.before_write = before_a_commit(1, lambda: holders.append(referred(other)))
    outcomes = carry_out(owner, child(1, reference="order 1"), child(2, reference="order 2"))
    assert [(outcome.run_id, outcome.result) for outcome in outcomes] == [(holders[0], "existing"), (numbered(2), "created")]
    assert [record.run_id for record in system.records(owner.claimed.run.id) if isinstance(record, CallEnded)] == [
        holders[0],
        numbered(2),
    ]


def test_a_reference_to_a_run_that_is_gone_is_free(system: LocalSystem) -> None:
    gone = referred(system)
    system.table.write([Delete(keys.header(NAMESPACE, gone))], token="t")
    owner = owned(system)
    asked = child(1, reference="order 1", input="another")
    assert carry_out(owner, asked) == (ended(asked, "created"),)
    named = system.store.reference(NAMESPACE, "w", "1", "order 1")
    assert named is not None
    assert named.run_id == numbered(1)


def test_an_event_that_somebody_else_sends_meanwhile_with_its_reference_is_one_message(
    system: LocalSystem, other: LocalSystem, faulty: FaultyTable
) -> None:
    owner, first, second = owned(system), run_in(other, "queued"), run_in(other, "queued")
    request = SendEvent(run_id=first, event="paid", reference="payment 1")
    faulty.before_write = before_a_commit(1, lambda: call(other, request))
    assert results(carry_out(owner, event(first), event(second), child(1))) == ["delivered", "delivered", "created"]
    assert [len(inbox(system, run_id)) for run_id in (first, second)] == [1, 1]


def test_two_owners_who_send_an_event_with_one_reference_at_once_send_it_once(table: Table) -> None:
    system = LocalSystem(table)
    both, target = (owned(system), owned(system)), run_in(system, "queued")
    with ThreadPoolExecutor(2) as threads:
        outcomes = side_by_side(threads, *(partial(carry_out, owner, event(target)) for owner in both))
    assert [results(one) for one in outcomes] == [["delivered"], ["delivered"]]
    assert len(inbox(system, target)) == 1


def test_a_child_that_is_written_to_meanwhile_is_linked_in_the_end_and_nothing_is_done_twice(
    system: LocalSystem, other: LocalSystem, faulty: FaultyTable
) -> None:
    holder, owner, target = referred(other), owned(system), run_in(other, "queued")
    keeper = Owner(other, claim(other, holder))
    attempts = iter(range(FENCE_ROUNDS + 3))

    def refresh(writes: Sequence[Write]) -> None:
        if len(writes) > 1 and next(attempts, None) is not None:
            call(other, RefreshClaim(run_id=holder, token=keeper.token))

    faulty.before_write = refresh
    assert results(carry_out(owner, child(1, reference="order 1"), child(2), event(target))) == [
        "existing",
        "created",
        "delivered",
    ]
    assert next(attempts, None) is None
    assert len(inbox(system, target)) == 1
    assert [watcher.run_id for watcher in system.store.watchers(NAMESPACE, holder, limit=2)] == [owner.claimed.run.id]


def test_the_run_itself_may_be_refreshed_while_it_is_told_something(
    system: LocalSystem, other: LocalSystem, faulty: FaultyTable
) -> None:
    owner = owned(system)
    own = owner.claimed.run.id
    faulty.before_write = before_a_commit(1, lambda: call(other, RefreshClaim(run_id=own, token=owner.token)))
    assert results(carry_out(owner, event(own))) == ["delivered"]
    assert len(inbox(system, own)) == 1


def test_a_checkpoint_that_loses_every_race_does_nothing_and_can_be_repeated(
    system: LocalSystem, other: LocalSystem, faulty: FaultyTable
) -> None:
    holder, owner = referred(other), owned(system)
    keeper = Owner(other, claim(other, holder))
    request = calling(owner, child(1, reference="order 1"), child(2))
    lost = []

    def refresh(writes: Sequence[Write]) -> None:
        lost.append(writes)
        call(other, RefreshClaim(run_id=holder, token=keeper.token))

    faulty.before_write = refresh
    with pytest.raises(StorageUnavailable):
        owner.send(request)
    leave_alone(faulty)
    assert len(lost) == MAX_ROUNDS
    assert [record.type for record in system.records(owner.claimed.run.id)] == ["input", "transition", "transition"]
    assert results(owner.send(request).ended) == ["existing", "created"]  # type: ignore[union-attr]  # it is Appended


STOPS = [
    ("pause", Directive(action="pause", operation_id="operation-1")),
    ("cancel", Directive(action="cancel", operation_id="operation-1", explanation="ordered twice")),
]


@pytest.mark.parametrize(("kind", "directive"), STOPS, ids=["pause", "cancel"])
def test_an_owner_that_is_too_fast_gets_a_directive_and_the_other_calls_go_through_once(
    system: LocalSystem, other: LocalSystem, faulty: FaultyTable, kind: Literal["pause", "cancel"], directive: Directive
) -> None:
    busy, owner, target = owned(other), owned(system), run_in(other, "queued")
    victim = busy.claimed.run.id

    def race(writes: Sequence[Write]) -> None:
        if len(writes) > 1:
            busy.append(completed("a") if busy.position else started("a"))

    faulty.before_write = race
    asked = control(kind, victim, explanation=directive.explanation)
    outcomes = carry_out(owner, asked, child(1), event(target))
    assert results(outcomes) == ["requested", "created", "delivered"]
    assert busy.position == FENCE_ROUNDS + 1
    leave_alone(faulty)
    run = system.run(victim)
    assert (run.state, run.directive, run.operations) == (Running(), directive, ("operation-1",))
    assert call(system, GetInbox(run_id=victim)).directive == directive
    assert len(inbox(system, target)) == 1
