"""What calls on other runs cost, counted; and that the most of them fit into one transaction of DynamoDB."""

from collections.abc import Callable

import pytest

from aiki_push.adapters.storage.sizes import MAX_TRANSACTION_WRITES
from aiki_push.adapters.storage.table import Table
from aiki_push.domain.run import MAX_TAIL_BYTES
from aiki_push.domain.values import MAX_INLINE_BYTES, RunId
from aiki_push.ports.api.calls import MAX_CHILD_STARTS, MAX_OPERATIONS, Call
from aiki_push.ports.api.checkpoints import Park
from aiki_push.ports.api.runs import StartReference, StartRun
from aiki_push.testing import CountingTable, Counts, FakeClock
from tests.integration.checkpoint_calls import carry_out, child, control, event, results
from tests.integration.controls import asleep, owned
from tests.integration.owners import Owner, started
from tests.integration.waiting_runs import FAR, end, numbered, run_in, wait
from tests.local_system import NAMESPACE, LocalSystem

SLOT = 2
"""Write units of a small slot in a transaction."""


@pytest.fixture
def counting(table: Table) -> CountingTable:
    return CountingTable(table)


@pytest.fixture
def system(counting: CountingTable) -> LocalSystem:
    return LocalSystem(counting, clock=FakeClock())


@pytest.fixture
def owner(system: LocalSystem) -> Owner:
    """Of a run that has written its first slot, so that the next ones are written without reading anything."""
    owner = owned(system)
    owner.append(started("first"))
    return owner


@pytest.mark.parametrize("number", [1, 3, MAX_CHILD_STARTS])
def test_children_are_one_transaction_of_their_headers_and_watchers_four_units_each_and_a_slot(
    counting: CountingTable, owner: Owner, number: int
) -> None:
    counting.reset()
    carry_out(owner, *map(child, range(number)))
    assert counting.counts == Counts(transactions=1, items_written=2 * number + 1, write_units=4 * number + SLOT)


def holder(system: LocalSystem) -> RunId:
    request = StartRun(workflow="w", version="1", input={"a": 1}, reference=StartReference(id="order 1"))
    return system.server.call(NAMESPACE, request).id


def ended_holder(system: LocalSystem) -> RunId:
    run_id = holder(system)
    end(system, run_id)
    return run_id


LINK = child(1, reference="order 1")

COSTS: dict[str, tuple[Callable[[LocalSystem], RunId], Callable[[RunId], Call], Counts]] = {
    "link to a run": (holder, lambda _: LINK, Counts(items_written=3, write_units=6, gets=2)),
    # Gets: the reference, the run that has ended, and the caller's header, which is written with the message.
    "link to a run that has ended": (ended_holder, lambda _: LINK, Counts(items_written=3, write_units=6, gets=3)),
    "child with a reference": (lambda _: numbered(1), lambda _: LINK, Counts(items_written=4, write_units=8, gets=1)),
    "event": (lambda system: run_in(system, "awaiting_event"), event, Counts(items_written=4, write_units=8, gets=1)),
    "wake-up": (
        lambda system: asleep(system, FAR),
        lambda run_id: control("wakeup", run_id),
        Counts(items_written=3, write_units=6, gets=1),
    ),
    "resume": (
        lambda system: run_in(system, "paused"),
        lambda run_id: control("resume", run_id),
        Counts(items_written=2, write_units=4, gets=1),
    ),
    "pause": (
        lambda system: run_in(system, "queued"),
        lambda run_id: control("pause", run_id),
        Counts(items_written=2, write_units=4, gets=1, queries=1),
    ),
    "cancel of a running run": (
        lambda system: run_in(system, "running"),
        lambda run_id: control("cancel", run_id),
        Counts(items_written=3, write_units=6, gets=1, queries=1),
    ),
}


@pytest.mark.parametrize(("prepare", "call", "cost"), COSTS.values(), ids=COSTS)
def test_each_kind_of_call_is_one_transaction_with_the_slot(
    system: LocalSystem,
    counting: CountingTable,
    owner: Owner,
    prepare: Callable[[LocalSystem], RunId],
    call: Callable[[RunId], Call],
    cost: Counts,
) -> None:
    target = prepare(system)
    counting.reset()
    carry_out(owner, call(target))
    cost.transactions = 1
    assert counting.counts == cost


def test_as_many_children_as_a_checkpoint_holds_fit_into_one_transaction_with_references_and_large_inputs(
    counting: CountingTable, owner: Owner
) -> None:
    text = "".join(chr(0x4E00 + (7919 * index * index) % 20_000) for index in range(MAX_INLINE_BYTES // 3 - 1))
    counting.reset()
    outcomes = carry_out(owner, *(child(number, reference=f"order {number}", input=text) for number in range(MAX_CHILD_STARTS)))
    assert results(outcomes) == ["created"] * MAX_CHILD_STARTS
    assert (counting.counts.transactions, counting.counts.items_written) == (1, 4 * MAX_CHILD_STARTS + 1)
    assert counting.counts.items_written <= MAX_TRANSACTION_WRITES


def waiting_with_a_full_tail(system: LocalSystem, number: int) -> RunId:
    """A run that waits for `paid`, and whose next transition is sealed into a slot of its own."""
    run_id = numbered(number)
    text = "x" * (MAX_TAIL_BYTES - 650)
    system.server.call(NAMESPACE, StartRun(run_id=run_id, workflow="w", version="1", input=text))
    end(system, run_id, Park(waits=(wait("event", "paid"),), seen_seq=0))
    return run_id


def test_as_many_calls_as_a_checkpoint_holds_fit_into_one_transaction_whatever_each_of_them_writes(
    system: LocalSystem, counting: CountingTable, owner: Owner
) -> None:
    targets = [waiting_with_a_full_tail(system, 100 + number) for number in range(MAX_OPERATIONS)]
    assert {system.run(target).tail.position for target in targets} == {0}
    children = [
        child(number, reference=f"order {number}", input="x" * 5_000) for number in range(MAX_CHILD_STARTS - MAX_OPERATIONS)
    ]
    counting.reset()
    outcomes = carry_out(owner, *children, *map(event, targets))
    assert results(outcomes) == ["created"] * len(children) + ["delivered"] * MAX_OPERATIONS
    assert {system.run(target).tail.position for target in targets} == {1}
    assert (counting.counts.transactions, counting.counts.items_written) == (1, 4 * MAX_CHILD_STARTS + 1)
