"""What a run costs: every write counted, in requests and in DynamoDB's write units."""

import asyncio

import pytest

from aiki_push import Run, task, workflow
from aiki_push.adapters.storage.table import Table
from aiki_push.ports.api.claims import Claimed, ClaimRun
from aiki_push.sdk.executor import SegmentResult
from aiki_push.testing import CountingTable, Counts
from tests.local_system import LocalSystem


@task("double")
async def double(number: int) -> int:
    return 2 * number


@workflow("sequence").v("1.0.0")
async def sequence(run: Run, steps: int) -> int:
    total = 0
    for number in range(steps):
        total += await double.start(run, number)
    return total


@workflow("fan-out").v("1.0.0")
async def fan_out(run: Run, width: int) -> int:
    return sum(await asyncio.gather(*(double.start(run, number) for number in range(width))))


@workflow("long-text").v("1.0.0")
async def long_text(run: Run, text: str) -> int:
    return await double.start(run, len(text))


@pytest.fixture
def counting(table: Table) -> CountingTable:
    return CountingTable(table)


@pytest.fixture
def system(counting: CountingTable) -> LocalSystem:
    return LocalSystem(counting)


def writes(counts: Counts) -> tuple[int, int, int]:
    """Single writes, transactions, write units."""
    return counts.single_writes, counts.transactions, counts.write_units


async def test_a_start_is_one_write_and_so_is_a_claim(system: LocalSystem, counting: CountingTable) -> None:
    handle = await sequence.start(system.client(), 1)
    started = counting.reset()
    claimed = await system.api().call(ClaimRun(run_id=handle.id, claim_id="claim", executor="executor"))
    assert isinstance(claimed, Claimed)
    assert (writes(started), writes(counting.reset())) == ((1, 0, 1), (1, 0, 1))


async def test_100_sequential_tasks_are_100_appends_of_one_unit_each_and_one_finish(
    system: LocalSystem, counting: CountingTable
) -> None:
    handle = await sequence.start(system.client(), 100)
    counting.reset()
    assert await system.executor(sequence).execute(handle.id, revision=0) == SegmentResult("completed")
    assert writes(counting.reset()) == (1 + 100 + 1, 0, 1 + 100 + 1)
    slots = system.store.log("default", handle.id, after=-1, max_bytes=2**31).slots
    assert [slot.position for slot in slots] == list(range(100))


async def test_a_gather_of_100_tasks_begins_with_one_append(system: LocalSystem, counting: CountingTable) -> None:
    handle = await fan_out.start(system.client(), 100)
    assert await system.executor(fan_out).execute(handle.id, revision=0) == SegmentResult("completed")
    first = system.store.log("default", handle.id, after=-1, max_bytes=2**31).slots[0]
    assert sum(record.type == "task_started" for record in first.records) == 100


async def test_an_input_of_30_kb_makes_no_later_write_dearer(system: LocalSystem, counting: CountingTable) -> None:
    small, large = "x", "".join(chr(97 + (7919 * index * index) % 26) for index in range(30_000))
    after_start = []
    for text in (small, large):
        handle = await long_text.start(system.client(), text)
        counting.reset()
        assert await system.executor(long_text).execute(handle.id, revision=0) == SegmentResult("completed")
        after_start.append(writes(counting.reset()))
    assert after_start[1] <= after_start[0]
