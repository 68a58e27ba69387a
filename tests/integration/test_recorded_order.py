"""What stands first in the log is given first: the first time, when everything is news, just as on every replay."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import pytest

from aiki_push import Failed, Run, WorkflowVersion, event, fixed, task, workflow
from aiki_push.adapters.storage.memory.table import MemoryTable
from aiki_push.adapters.storage.table import Write
from aiki_push.domain.errors import StorageUnavailable
from aiki_push.domain.log_records import CallEnded, TaskCancelled, TaskCompleted
from aiki_push.domain.run_states import TaskCause
from aiki_push.testing import FAKE_NOW, FaultyTable, Harness

OUTAGE_MS = 10_000

go = event("go")


@task("quick")
async def quick() -> None:
    return None


@task("slow")
async def slow() -> None:
    await asyncio.sleep(1)


@workflow("child").v("1")
async def child(run: Run) -> str:
    await asyncio.sleep(60)
    return "ended"


def version_of(body: Callable[[Run], Awaitable[Any]]) -> WorkflowVersion[[], Any]:
    @workflow("ordered").v("1")
    async def ordered(run: Run) -> Any:
        return await body(run)

    return ordered


def starts_child(writes: Sequence[Write]) -> bool:
    return any(write.key.sk.startswith("L#") for write in writes) and any(write.key.sk.startswith("W#") for write in writes)


async def slow_one(run: Run) -> str:
    await slow.start(run)
    return "slow"


async def message(run: Run) -> str:
    await go.wait(run)
    return "message"


async def timer(run: Run) -> str:
    await asyncio.sleep(1)
    return "timer"


@pytest.mark.parametrize("other", [slow_one, message, timer])
def test_what_happens_while_a_child_is_being_started_is_given_after_the_child(other: Callable[[Run], Awaitable[str]]) -> None:
    """The server says later when the child was started than the executor says of the other thing, but the log says it first."""
    orders: list[list[str]] = []

    async def body(run: Run) -> list[str]:
        async def start() -> str:
            await quick.start(run)
            await child.start_as_child(run)
            return "child"

        branches = [asyncio.create_task(start()), asyncio.create_task(slow_one(run)), asyncio.ensure_future(other(run))]
        orders.append([await ended for ended in asyncio.as_completed(branches)])
        await asyncio.sleep(3_600)
        return orders[-1]

    table, version = FaultyTable(MemoryTable()), version_of(body)
    with Harness(version, child, table=table) as harness:

        def fail(writes: Sequence[Write]) -> None:
            if starts_child(writes) and harness.now < FAKE_NOW + OUTAGE_MS:
                raise StorageUnavailable("the table does not answer")

        table.before_write = fail

        async def scenario() -> None:
            handle = await version.start(harness.client)
            await asyncio.sleep(1)
            await go.send(handle)
            await handle.wait()
            records = harness.records(handle.id)
            [called] = [one for one in records if isinstance(one, CallEnded)]
            [*_, completed] = [one for one in records if isinstance(one, TaskCompleted)]
            assert completed.at < called.at
            assert records.index(called) < records.index(completed)

        harness.run(scenario())
    assert orders[0][0] == "child"
    assert orders == [orders[0]] * 2


def test_a_branch_whose_child_is_being_started_can_only_be_cancelled_once_it_has_the_child() -> None:
    outcomes: list[list[object]] = []

    async def body(run: Run) -> list[object]:
        started: list[str] = []

        async def start() -> None:
            await quick.start(run)
            started.append((await child.start_as_child(run)).id)
            await go.wait(run)

        starting = asyncio.create_task(start())
        await slow.start(run)  # ends while the child is being started
        starting.cancel()
        await asyncio.wait([starting])
        outcomes.append([starting.cancelled(), len(started)])
        await asyncio.sleep(3_600)
        return outcomes[-1]

    table, version = FaultyTable(MemoryTable()), version_of(body)
    with Harness(version, child, table=table) as harness:

        def fail(writes: Sequence[Write]) -> None:
            if starts_child(writes) and harness.now < FAKE_NOW + OUTAGE_MS:
                raise StorageUnavailable("the table does not answer")

        table.before_write = fail

        async def scenario() -> list[object]:
            handle = await version.start(harness.client)
            output: list[object] = (await handle.wait()).value()
            return output

        assert harness.run(scenario()) == [True, 1]
    assert outcomes == [[True, 1]] * 2


def test_the_outcome_of_a_call_that_was_cancelled_is_not_recorded() -> None:
    """Three handlers end at once: the first outcome cancels the third call, and the second call is to be tried again."""

    @task("first")
    async def first() -> None:
        return None

    @task("second", retry=fixed(max_attempts=2, delay_ms=1_000))
    async def second() -> None:
        raise ValueError("not yet")

    @task("third")
    async def third() -> None:
        return None

    async def body(run: Run) -> bool:
        async def cancel_third() -> None:
            await first.start(run)
            branches[2].cancel()

        branches: list[asyncio.Task[None]] = [asyncio.create_task(cancel_third())]
        branches += [asyncio.create_task(second.start(run)), asyncio.create_task(third.start(run))]
        await asyncio.wait(branches)
        return branches[2].cancelled()

    version = version_of(body)
    with Harness(version) as harness:

        async def scenario() -> None:
            handle = await version.start(harness.client)
            assert (await handle.wait()).value() is True
            records = harness.records(handle.id)
            [cancelled] = [one.task_id for one in records if isinstance(one, TaskCancelled)]
            assert cancelled not in [one.task_id for one in records if isinstance(one, TaskCompleted)]

        harness.run(scenario())


def test_news_that_cannot_be_read_for_a_while_fail_no_run() -> None:
    """The payload of an event is in a store that does not answer while a handler runs."""
    text = event("text", str)

    @task("long")
    async def long() -> None:
        await asyncio.sleep(600)

    async def body(run: Run) -> int:
        _, got = await asyncio.gather(long.start(run), text.wait(run))
        return len(got.data)

    table, version = FaultyTable(MemoryTable()), version_of(body)
    with Harness(version, table=table) as harness:

        def fail(read: object) -> None:
            if getattr(read, "sk", "").startswith("P#") and harness.now < FAKE_NOW + 60_000:
                raise StorageUnavailable("the table does not answer")

        table.before_read = fail

        async def scenario() -> None:
            handle = await version.start(harness.client)
            await asyncio.sleep(5)
            await text.send(handle, "x" * 100_000)
            assert (await handle.wait()).value() == 100_000
            assert harness.segments(handle.id) == 1

        harness.run(scenario())


@pytest.mark.parametrize("cut_off_by", ["the end of the attempt", "a timeout"])
def test_a_payment_of_unknown_outcome_is_not_made_again_by_the_next_attempt_of_its_workflow(cut_off_by: str) -> None:
    paid: list[int] = []

    @task("pay", interrupted="fail")
    async def pay() -> None:
        paid.append(1)
        await asyncio.sleep(10)

    @task("check")
    async def check() -> None:
        await asyncio.sleep(1)
        raise ValueError("no")

    @workflow("retried").v("1", retry=fixed(max_attempts=3, delay_ms=1_000))
    async def retried(run: Run) -> None:
        if cut_off_by == "a timeout":
            await asyncio.wait_for(pay.start(run), 1)
        await asyncio.gather(pay.start(run), check.start(run))

    with Harness(retried) as harness:

        async def scenario() -> None:
            handle = await retried.start(harness.client)
            state = (await handle.wait()).state
            assert isinstance(state, Failed)
            assert isinstance(state.cause, TaskCause)
            assert state.error.message.startswith("task pay failed in attempt 1: OutcomeUnknown")
            assert harness.header(handle.id).attempts == 2

        harness.run(scenario())
    assert paid == [1]
