"""Very many waits: what they cost to write, to wake and to replay, and that a header too small for them loses none."""

import asyncio
import sys
from collections.abc import Callable
from datetime import timedelta
from types import FrameType
from typing import Any

import pytest

from aiki_push import Run, event, task, workflow
from aiki_push.adapters.storage.memory.table import MemoryTable
from aiki_push.domain.log_records import CallEnded, Received, WaitEnded, WaitStarted
from aiki_push.domain.waits import ANY_KEY
from aiki_push.ports.api.checkpoints import MAX_WAITS
from aiki_push.testing import CountingTable, Harness

go = event("go", int)


def test_five_hundred_branches_that_sleep_beside_a_long_one_cost_a_few_writes() -> None:
    @task("long")
    async def long() -> None:
        await asyncio.sleep(60)

    @workflow("mixed").v("1")
    async def mixed(run: Run, is_durable: bool) -> int:
        async def nap(number: int) -> int:
            await (run.sleep(f"nap-{number}", timedelta(seconds=1)) if is_durable else asyncio.sleep(1))
            return number

        *naps, _ = await asyncio.gather(*map(nap, range(500)), long.start(run))
        return sum(map(int, filter(None, naps)))

    table = CountingTable(MemoryTable())
    with Harness(mixed, table=table) as harness:

        async def scenario(is_durable: bool) -> None:
            handle = await mixed.start(harness.client, is_durable)
            table.reset()
            assert (await handle.wait()).value() == sum(range(500))
            counts = table.reset()
            assert harness.segments(handle.id) == 1
            records = harness.records(handle.id)
            assert [sum(isinstance(one, kind) for one in records) for kind in (WaitStarted, WaitEnded)] == [500, 500]
            print(counts)
            assert counts.single_writes + counts.transactions <= 15

        harness.run(scenario(True))
        harness.run(scenario(False))


@pytest.mark.parametrize("is_one_event", [True, False])
def test_two_hundred_events_at_one_moment_wake_a_run_that_waits_for_them_all_a_few_times(is_one_event: bool) -> None:
    def named(number: int) -> Any:
        return go if is_one_event else event(f"go-{number}", int)

    @workflow("waiting").v("1")
    async def waiting(run: Run) -> list[int]:
        return [got.data for got in await asyncio.gather(*(named(number).wait(run) for number in range(200)))]

    table = CountingTable(MemoryTable())
    with Harness(waiting, table=table) as harness:

        async def scenario() -> None:
            handle = await waiting.start(harness.client)
            await harness.settle()
            table.reset()
            for number in range(200):
                await named(number).send(handle, number)
            sent = table.reset()
            assert (await handle.wait()).value() == list(range(200))
            print(sent, table.counts, harness.segments(handle.id))
            assert harness.segments(handle.id) <= 4
            assert sent.transactions == 200

        harness.run(scenario())


@pytest.mark.parametrize("what", ["event", "child", "wakeup", "deadline", "other event", "last deadline"])
def test_a_run_whose_waits_do_not_fit_into_its_header_is_woken_by_each_of_them(what: str) -> None:
    @workflow("child").v("1")
    async def child(run: Run, number: int) -> int:
        return (await go.wait(run)).data

    @workflow("waiting").v("1")
    async def waiting(run: Run) -> str:
        children = [await child.start_as_child(run, number) for number in range(5)]
        branches = [
            *(asyncio.create_task(event(f"event-{number}", int).wait(run), name=f"event-{number}") for number in range(20)),
            *(asyncio.create_task(children[number].wait(), name=f"child-{number}") for number in range(5)),
            *(
                asyncio.create_task(run.sleep(f"sleep-{number}", timedelta(days=2 + number)), name=f"sleep-{number}")
                for number in range(20)
            ),
        ]
        done, _ = await asyncio.wait(branches, return_when=asyncio.FIRST_COMPLETED)
        if what == "last deadline":
            await branches[-1]
            done = {branches[-1]}
        return " ".join([*(one.get_name() for one in done), *(handle.id for handle in children)])

    with Harness(waiting, child) as harness:

        async def scenario() -> str:
            handle = await waiting.start(harness.client)
            await harness.settle()
            header = harness.header(handle.id)
            assert {(one.kind, one.key) for one in header.waits} == {("event", ANY_KEY), ("child", ANY_KEY), ("sleep", ANY_KEY)}
            match what:
                case "event":
                    await event("event-19", int).send(handle, 1)
                case "child":
                    await go.send(await child.get(harness.client, started(harness, handle.id)[4]), 1)
                case "wakeup":
                    await handle.wakeup("sleep-7")
                case "other event":
                    await go.send(handle, 1)
                    await harness.settle()
                    assert harness.header(handle.id).state.status == "sleeping"
                    await event("event-3", int).send(handle, 1)
                case _:
                    pass
            return str((await handle.wait()).value()).split()[0]

        expected = {
            "event": "event-19",
            "child": "child-4",
            "wakeup": "sleep-7",
            "deadline": "sleep-0",
            "other event": "event-3",
            "last deadline": "sleep-19",
        }
        assert harness.run(scenario()) == expected[what]


def started(harness: Harness, run_id: str) -> list[str]:
    """The children of the run, in the order of their starts."""
    return [one.run_id for one in harness.records(run_id) if isinstance(one, CallEnded)]


@pytest.mark.parametrize("count", [MAX_WAITS, MAX_WAITS + 1])
def test_a_run_may_wait_for_more_than_one_park_can_tell(count: int) -> None:
    @workflow("waiting").v("1")
    async def waiting(run: Run, count: int) -> int:
        waits = [asyncio.create_task(event(f"event-{number}", int).wait(run)) for number in range(count)]
        done, _ = await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        return done.pop().result().data

    with Harness(waiting) as harness:

        async def scenario() -> int:
            handle = await waiting.start(harness.client, count)
            await harness.settle()
            assert harness.header(handle.id).state.status == "awaiting_event"
            await event(f"event-{count - 1}", int).send(handle, 7)
            return (await handle.wait()).value()

        assert harness.run(scenario()) == 7


def lines_executed(function: Callable[[], None]) -> int:
    """How many lines of Python `function` takes, whatever else the machine does."""
    lines = 0

    def trace(frame: FrameType, what: str, argument: object) -> Any:
        nonlocal lines
        lines += what == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        function()
    finally:
        sys.settrace(before)
    return lines


def replay_of(count: int, kind: str) -> int:
    """How many lines it takes to replay a run that has got so many events, one after the other or all at once."""

    @workflow("waiting").v("1")
    async def waiting(run: Run) -> int:
        if kind == "in turn":
            got = [await go.wait(run, timeout=timedelta(days=1)) for _ in range(count)]
        elif kind == "at once":
            got = await asyncio.gather(*(go.wait(run, timeout=timedelta(days=1)) for _ in range(count)))
        else:
            got = list(await asyncio.gather(*(event(f"go-{number}", int).wait(run) for number in range(count))))
        await asyncio.sleep(3_600)
        return len(got)

    with Harness(waiting) as harness:

        async def begin() -> str:
            handle = await waiting.start(harness.client)
            await harness.settle()
            for number in range(count):
                await (event(f"go-{number}", int) if kind == "each its own" else go).send(handle, number)
            await harness.settle()
            assert sum(isinstance(one, Received) for one in harness.records(handle.id)) == count
            return handle.id

        async def end(run_id: str) -> None:
            assert (await (await waiting.get(harness.client, run_id)).wait()).value() == count

        run_id = harness.run(begin())
        return lines_executed(lambda: harness.run(end(run_id)))


@pytest.mark.parametrize("kind", ["in turn", "at once", "each its own"])
def test_the_replay_of_ten_times_as_many_waits_takes_about_ten_times_as_long(kind: str) -> None:
    few, many = replay_of(100, kind), replay_of(1_000, kind)
    print(f"{kind}: {few} and {many} lines")
    assert many < 12 * few
