"""What children cost, and what a workflow does to other runs. Every write counted, in DynamoDB's write units too."""

import asyncio
from math import ceil
from typing import Any

import pytest

from aiki_push import Run, WorkflowVersion, event, workflow
from aiki_push.adapters.storage import keys
from aiki_push.adapters.storage.memory.table import MemoryTable
from aiki_push.adapters.storage.sizes import item_size, write_units
from aiki_push.adapters.storage.table import Table, rows
from aiki_push.domain.run_states import Status
from aiki_push.ports.api.calls import MAX_CHILD_STARTS
from aiki_push.testing import CountingTable, FakeClock, Harness, SequentialEntropy
from tests.integration.controls import cancel
from tests.integration.owners import FINISH, Owner, claim
from tests.integration.waiting_runs import FIRST_CHILD, numbered, parent_of, parents, run_in
from tests.integration.write_costs import CLAIM, FINISHING, Writes, segment_cost, single, sum_of, transaction, writes
from tests.local_system import NAMESPACE, LocalSystem

paid = event("paid", int)


@workflow("empty").v("1.0.0")
async def empty(run: Run, number: int) -> int:
    return number


@workflow("starter").v("1.0.0")
async def starter(run: Run, children: int) -> None:
    await asyncio.gather(*(empty.start_as_child(run, number) for number in range(children)))


@workflow("namer").v("1.0.0")
async def namer(run: Run, children: int) -> None:
    named = [empty.with_("reference.id", f"child {number}") for number in range(children)]
    await asyncio.gather(*(version.start_as_child(run, number) for number, version in enumerate(named)))


@workflow("parent").v("1.0.0")
async def parent(run: Run, children: int) -> None:
    handles = await asyncio.gather(*(empty.start_as_child(run, number) for number in range(children)))
    await asyncio.gather(*(handle.wait() for handle in handles))


@workflow("teller").v("1.0.0")
async def teller(run: Run, target: str) -> bool:
    return await paid.send(run.peer(target), 5)


@workflow("canceller").v("1.0.0")
async def canceller(run: Run, target: str) -> None:
    await run.peer(target).cancel()


@pytest.fixture
def counting(table: Table) -> CountingTable:
    return CountingTable(table)


@pytest.fixture
def system(counting: CountingTable) -> LocalSystem:
    return LocalSystem(counting, clock=FakeClock(), entropy=SequentialEntropy())


def slot_units(counting: CountingTable, run_id: str) -> int:
    """Of the run's slots as they are stored."""
    return sum(write_units(item_size(slot)) for slot in rows(counting, keys.slots(NAMESPACE, run_id, after=-1)))


@pytest.mark.parametrize(("version", "units_each"), [(starter, 4), (namer, 6)], ids=["without references", "with references"])
@pytest.mark.parametrize("number", [1, 24, 25, 60])
async def test_children_are_started_24_in_a_transaction_for_a_slot_and_four_units_each_and_two_more_for_a_reference(
    system: LocalSystem, counting: CountingTable, version: WorkflowVersion[[int], None], units_each: int, number: int
) -> None:
    handle = await version.start(system.client(), number)
    cost = await segment_cost(system, counting, version, handle.id)
    transactions, units = ceil(number / MAX_CHILD_STARTS), slot_units(counting, handle.id)
    items = transactions + number * units_each // 2
    assert cost == sum_of(CLAIM, (0, transactions, items, 2 * units + number * units_each), FINISHING)
    assert units <= 2 * transactions


@pytest.mark.parametrize("has_ended", [False, True], ids=["it goes on", "it has ended"])
async def test_a_link_to_a_run_that_exists_is_one_transaction_of_three_items_and_six_units(
    system: LocalSystem, counting: CountingTable, has_ended: bool
) -> None:
    child = await empty.with_("reference.id", "child 0").start(system.client(), 0)
    if has_ended:
        await segment_cost(system, counting, empty, child.id)
    handle = await namer.start(system.client(), 1)
    assert await segment_cost(system, counting, namer, handle.id) == sum_of(CLAIM, transaction(3, 6), FINISHING)


def test_a_run_that_is_watched_finishes_for_one_unit_and_tells_each_watcher_in_a_transaction_of_six(
    system: LocalSystem, counting: CountingTable
) -> None:
    parents(system, 3)
    owner = Owner(system, claim(system, FIRST_CHILD))
    counting.reset()
    owner.send(owner.checkpoint(end=FINISH))
    assert writes(counting.reset()) == single()
    system.attention.advance(NAMESPACE, FIRST_CHILD)
    settling = single()
    assert writes(counting.reset()) == sum_of(*[transaction(3, 6)] * 3, settling)


def whole_cost(children: int) -> int:
    """Write units of a parent and its children, from the first start to the last end, without the parent's slots."""
    counting = CountingTable(MemoryTable())
    with Harness(parent, empty, table=counting) as harness:

        async def scenario() -> str:
            handle = await parent.start(harness.client, children)
            await handle.wait()
            return handle.id

        run_id = harness.run(scenario())
        return counting.counts.write_units - 2 * slot_units(counting, run_id)


def test_a_child_costs_15_units_from_its_start_until_its_parent_was_told() -> None:
    # Each comes to 4 for the start, 2 for the offer, 1 for the claim, 1 for the finish, 6 for the telling, 1 to be done with it.
    assert (whole_cost(48) - whole_cost(24)) / 24 == 15


def test_what_follows_a_cancel_is_one_write_and_one_for_each_child(system: LocalSystem, counting: CountingTable) -> None:
    run_id = parent_of(system, *map(numbered, range(1, 4))).claimed.run.id
    cancel(system, run_id)
    counting.reset()
    system.attention.advance(NAMESPACE, run_id)
    assert writes(counting.reset()) == single(3 + 1)


@pytest.mark.parametrize(
    ("version", "status", "cost"),
    [
        (teller, "awaiting_event", transaction(4, 8)),
        (teller, "running", transaction(4, 8)),
        (teller, "completed", single()),
        (canceller, "awaiting_event", transaction(2, 4)),
        (canceller, "running", transaction(3, 6)),
    ],
)
async def test_what_a_workflow_does_to_another_run_is_one_transaction_with_the_slot_that_says_so(
    system: LocalSystem, counting: CountingTable, version: WorkflowVersion[[str], Any], status: Status, cost: Writes
) -> None:
    handle = await version.start(system.client(), run_in(system, status))
    assert await segment_cost(system, counting, version, handle.id) == sum_of(CLAIM, cost, FINISHING)
