"""Faults in virtual time: outages of the table, and executors that die."""

import asyncio
from collections.abc import Callable
from datetime import timedelta

import pytest

from aiki_push import Run, task, workflow
from aiki_push.adapters.storage.memory.table import MemoryTable
from aiki_push.adapters.storage.table import Key
from aiki_push.domain.errors import StorageUnavailable
from aiki_push.domain.limits import Limits
from aiki_push.domain.log_records import Transition
from aiki_push.domain.run_states import Queued
from aiki_push.sdk.executor import ExecutorConfig
from aiki_push.testing import FAKE_NOW, CountingTable, FaultyTable, Harness, NothingHappens

MINUTE_MS = 60_000

FOREVER_S = 1e12

began: list[int] = []


@task("work")
async def work(seconds: float) -> str:
    began.append(1)
    await asyncio.sleep(seconds)
    return "worked"


@workflow("working").v("1.0.0")
async def working(run: Run, seconds: float) -> str:
    return await work.start(run, seconds)


@workflow("waiting").v("1.0.0")
async def waiting(run: Run) -> str:
    await asyncio.sleep(600)
    return await work.start(run, 1.0)


def outage(harness: Harness, *, since_ms: int, until_ms: int) -> Callable[[object], None]:
    def fail(_: object) -> None:
        if since_ms <= harness.now - FAKE_NOW < until_ms:
            raise StorageUnavailable("the table does not answer")

    return fail


def recoveries(harness: Harness, run_id: str) -> int:
    transitions = [record.state for record in harness.records(run_id) if isinstance(record, Transition)]
    return transitions.count(Queued(reason="recovery"))


@pytest.mark.parametrize("kind", ["before_read", "before_write", "after_write"])
@pytest.mark.parametrize(("since_ms", "until_ms"), [(599_000, 660_000), (600_001, 604_000), (601_000, 900_000)])
def test_a_run_survives_an_outage_of_the_table(kind: str, since_ms: int, until_ms: int) -> None:
    table = FaultyTable(MemoryTable())
    with Harness(waiting, table=table) as harness:
        setattr(table, kind, outage(harness, since_ms=since_ms, until_ms=until_ms))

        async def scenario() -> str:
            handle = await waiting.start(harness.client)
            return (await handle.wait()).value()

        assert harness.run(scenario()) == "worked"
        assert 601_000 <= harness.now - FAKE_NOW < 1_200_000


def test_a_run_whose_claim_cannot_be_refreshed_is_recovered_while_its_handler_goes_on() -> None:
    table = FaultyTable(MemoryTable())
    began.clear()
    with Harness(working, table=table) as harness:
        table.before_write = outage(harness, since_ms=MINUTE_MS, until_ms=3 * MINUTE_MS)

        async def scenario() -> str:
            handle = await working.start(harness.client, 600.0)
            assert (await handle.wait()).value() == "worked"
            return handle.id

        run_id = harness.run(scenario())
        assert (len(began), harness.segments(run_id), recoveries(harness, run_id)) == (2, 2, 1)


@pytest.mark.parametrize("crashes", [1, 3])
def test_every_crash_costs_the_time_until_the_claim_is_stale(crashes: int) -> None:
    began.clear()
    with Harness(working, limits=Limits(claim_idle_timeout_ms=MINUTE_MS), config=ExecutorConfig(20_000)) as harness:

        async def scenario() -> str:
            handle = await working.start(harness.client, 10.0)
            for number in range(crashes):
                await asyncio.sleep(number * 60 + 5 - (harness.now - FAKE_NOW) / 1_000)
                harness.crash(handle.id)
            assert (await handle.wait()).value() == "worked"
            return handle.id

        run_id = harness.run(scenario())
        assert (len(began), harness.segments(run_id), recoveries(harness, run_id)) == (crashes + 1,) * 2 + (crashes,)
        assert harness.now - FAKE_NOW < crashes * MINUTE_MS + 11_000


def test_a_run_that_crashes_beside_one_that_hangs_is_recovered_in_time() -> None:
    with Harness(working) as harness:
        ended: list[int] = []

        async def scenario() -> None:
            await working.start(harness.client, FOREVER_S)
            handle = await working.start(harness.client, 10.0)
            late = await working.with_("delay", timedelta(days=30)).start(harness.client, FOREVER_S)
            await asyncio.sleep(1)
            harness.crash(handle.id)
            await handle.wait()
            ended.append(harness.now - FAKE_NOW)
            await late.wait()

        with pytest.raises(NothingHappens):
            harness.run(scenario())
        assert ended == [100_000]


def test_a_crash_late_in_a_quiet_time_is_recovered_before_what_comes_later() -> None:
    """Claims are kept, and nothing else happens, until shortly before time would jump over that."""
    ended: list[int] = []
    began.clear()

    @task("hang-once")
    async def hang_once() -> None:
        began.append(1)
        await asyncio.sleep(FOREVER_S if len(began) == 1 else 0)

    @workflow("hanging").v("1.0.0")
    async def hanging(run: Run) -> None:
        await hang_once.start(run)

    @workflow("sleeping").v("1.0.0")
    async def sleeping(run: Run) -> None:
        await asyncio.sleep(175)

    with Harness(hanging, sleeping) as harness:

        async def scenario() -> None:
            handle = await hanging.start(harness.client)
            other = await sleeping.start(harness.client)
            await hanging.with_("delay", timedelta(days=30)).start(harness.client)
            await other.wait()
            harness.crash(handle.id)
            await handle.wait()
            ended.append(harness.now - FAKE_NOW)

        harness.run(scenario())
        assert ended == [150_000 + 90_000]


def test_a_run_that_can_be_neither_advanced_nor_put_off_does_not_hold_up_the_others() -> None:
    table = FaultyTable(MemoryTable())
    lost: list[str] = []

    def fail(read: object) -> None:
        if isinstance(read, Key) and any(run_id in read.pk for run_id in lost):
            raise StorageUnavailable("this partition does not answer")

    table.before_read = fail
    with Harness(waiting, table=table) as harness:

        async def scenario() -> str:
            handles = [await waiting.start(harness.client) for _ in range(2)]
            await harness.settle()
            lost.append(handles[0].id)
            result = (await handles[1].wait()).value()
            lost.clear()
            assert (await handles[0].wait()).value() == result
            return result

        assert harness.run(scenario()) == "worked"
        assert harness.now - FAKE_NOW < 3 * MINUTE_MS + 600_000


def test_settling_does_not_wait_for_a_crashed_run() -> None:
    with Harness(working) as harness:

        async def scenario() -> str:
            handle = await working.start(harness.client, 10.0)
            await asyncio.sleep(1)
            harness.crash(handle.id)
            await harness.settle()
            return (await handle.refresh()).state.status

        assert (harness.run(scenario()), harness.now) == ("running", FAKE_NOW + 1_000)


def test_settling_takes_as_long_as_the_handlers_do_and_no_longer() -> None:
    with Harness(working, waiting) as harness:

        async def scenario() -> tuple[str, str]:
            first, second = await working.start(harness.client, 20.0), await waiting.start(harness.client)
            await harness.settle()
            return (await first.refresh()).state.status, (await second.refresh()).state.status

        assert (harness.run(scenario()), harness.now) == (("completed", "sleeping"), FAKE_NOW + 20_000)


def test_what_a_run_writes_can_be_counted() -> None:
    table = CountingTable(MemoryTable())
    with Harness(working, table=table) as harness:

        async def scenario() -> int:
            handle = await working.start(harness.client, 1.0)
            table.reset()
            await handle.wait()
            return table.counts.items_written

        assert harness.run(scenario()) == harness.run(scenario()) > 0
