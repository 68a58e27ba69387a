"""What an executor hears of its run while it executes it: in any order, twice, or too late."""

import asyncio

import pytest

from aiki_push import Run, task
from aiki_push.domain.log_records import Received
from aiki_push.domain.run import Directive
from aiki_push.domain.values import RunId
from aiki_push.testing import FAKE_NOW, Harness
from tests.integration.told_executors import executor_of, go, keeper, send, version_of
from tests.local_system import LocalSystem


@pytest.mark.parametrize(
    "order",
    [[[0, 1, 2]], [[0], [1], [2]], [[2], [1], [0]], [[1, 2], [0]], [[0, 1], [0, 1, 2]], [[2, 0], [2, 1]]],
    ids=str,
)
async def test_messages_are_taken_in_their_order_however_the_answers_that_brought_them_came(order: list[list[int]]) -> None:
    told = asyncio.Event()

    @task("long")
    async def long() -> None:
        await told.wait()

    async def body(run: Run) -> list[int]:
        *got, _ = await asyncio.gather(go.wait(run), go.wait(run), go.wait(run), long.start(run))
        return [one.data for one in got]

    system, version = LocalSystem(), version_of(body)
    handle = await version.start(system.client())
    execution = asyncio.create_task(executor_of(system, version).execute(handle.id, revision=None))
    while system.run(handle.id).state.status != "running":
        await asyncio.sleep(0)
    messages = send(system, RunId(handle.id), 10, 11, 12)
    for answer in order:
        await asyncio.sleep(0.01)
        keeper().tell(*(messages[place] for place in answer))
    await asyncio.sleep(0.01)
    told.set()
    assert (await execution).outcome == "completed"
    assert (await handle.wait()).value() == [10, 11, 12]
    received = [one.seq for one in system.records(handle.id) if isinstance(one, Received)]
    assert received == [1, 2, 3]


async def test_a_message_after_a_gap_waits_for_the_park_to_be_refused_which_closes_the_gap() -> None:
    told = asyncio.Event()

    @task("long")
    async def long() -> None:
        await told.wait()

    async def body(run: Run) -> list[int]:
        await long.start(run)
        return [(await go.wait(run)).data for _ in range(2)]

    system, version = LocalSystem(), version_of(body)
    handle = await version.start(system.client())
    execution = asyncio.create_task(executor_of(system, version).execute(handle.id, revision=None))
    while system.run(handle.id).state.status != "running":
        await asyncio.sleep(0)
    messages = send(system, RunId(handle.id), 10, 11)
    keeper().tell(messages[1])
    await asyncio.sleep(0.01)
    told.set()
    assert (await execution).outcome == "completed"
    assert (await handle.wait()).value() == [10, 11]


async def test_what_comes_after_the_end_of_a_segment_harms_nobody() -> None:
    async def body(run: Run) -> int:
        return (await go.wait(run)).data

    system, version = LocalSystem(), version_of(body)
    handle = await version.start(system.client())
    executor = executor_of(system, version)
    assert (await executor.execute(handle.id, revision=None)).outcome == "parked"
    early = keeper()
    messages = send(system, RunId(handle.id), 7)
    early.tell(*messages)
    early.lose()
    assert (await executor.execute(handle.id, revision=None)).outcome == "completed"
    early.tell(*messages, directive=Directive(action="cancel", operation_id="late"))
    await asyncio.sleep(0)
    assert (await handle.wait()).value() == 7


def test_an_event_is_given_while_a_handler_runs_within_about_a_second() -> None:
    heard: list[float] = []

    @task("long")
    async def long() -> None:
        await asyncio.sleep(60)

    async def body(run: Run) -> int:
        async def listen() -> int:
            got = await go.wait(run)
            heard.append(run.now().timestamp() - FAKE_NOW / 1_000)
            return got.data

        number, _ = await asyncio.gather(listen(), long.start(run))
        return number

    version = version_of(body)
    with Harness(version) as harness:

        async def scenario() -> None:
            handle = await version.start(harness.client)
            await asyncio.sleep(5)
            await go.send(handle, 7)
            assert (await handle.wait()).value() == 7
            assert harness.segments(handle.id) == 1

        harness.run(scenario())
    assert heard == [pytest.approx(5.5, abs=0.6)]
