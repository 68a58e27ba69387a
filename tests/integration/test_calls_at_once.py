"""Children and events by the dozen, and large ones: what no checkpoint can hold goes into several, and what is too large is refused."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any

import pytest

from aiki_push import Failed, Run, WorkflowVersion, event, task, workflow
from aiki_push.adapters.storage import keys
from aiki_push.adapters.storage.memory.table import MemoryTable
from aiki_push.adapters.storage.table import Delete, Item, Key, Query, key_of
from aiki_push.domain.log_records import CallEnded
from aiki_push.ports.api.runs import ListRuns
from aiki_push.testing import CountingTable, FaultyTable, Harness
from tests.local_system import NAMESPACE

LARGE = "x" * 200_000
TOO_LARGE = "x" * 300_000

number_sent = event("number-sent", int)
text_sent = event("text-sent", str)


def version_of(body: Callable[[Run], Awaitable[Any]]) -> WorkflowVersion[[], Any]:
    @workflow("caller").v("1")
    async def caller(run: Run) -> Any:
        return await body(run)

    return caller


@workflow("echo").v("1")
async def echo(run: Run, text: str) -> str:
    return text


@workflow("adder").v("1")
async def adder(run: Run, count: int) -> list[int]:
    return [(await number_sent.wait(run)).data for _ in range(count)]


def outcome_of(body: Callable[[Run], Awaitable[Any]], table: Any = None) -> Any:
    """What a run of `body` returns, once it was replayed from the log too; no run is left that has not ended."""
    outcomes: list[Any] = []

    async def replayed(run: Run) -> Any:
        outcomes.append(await body(run))
        await run.sleep("replay", timedelta(hours=1))
        return outcomes[-1]

    version = version_of(replayed)
    with Harness(version, echo, adder, table=table) as harness:

        async def scenario() -> None:
            await (await version.start(harness.client)).wait()
            listed = await harness.client.api.call(ListRuns(limit=100))
            assert Counter(run.state.status for run in listed.runs).keys() == {"completed"}

        harness.run(scenario())
    assert outcomes == [outcomes[0]] * 2
    return outcomes[0]


@pytest.mark.parametrize("count", [24, 25, 90])
def test_any_number_of_children_can_be_started_at_once(count: int) -> None:
    table = CountingTable(MemoryTable())
    started: list[int] = []

    async def body(run: Run) -> int:
        handles = await asyncio.gather(*(echo.start_as_child(run, str(number)) for number in range(count)))
        started.append(table.counts.transactions)
        ends = await asyncio.gather(*(handle.wait() for handle in handles))
        assert [end.value() for end in ends] == [str(number) for number in range(count)]
        return len({handle.id for handle in handles})

    assert outcome_of(body, table) == count
    assert started[0] == -(-count // 24)


@pytest.mark.parametrize(("targets", "each"), [(1, 25), (25, 1), (3, 10)])
def test_events_to_the_same_run_and_to_many_are_sent_once_each_and_in_order(targets: int, each: int) -> None:
    async def body(run: Run) -> list[list[int]]:
        handles = [await adder.start_as_child(run, each) for _ in range(targets)]
        sent = await asyncio.gather(*(number_sent.send(handle, number) for number in range(each) for handle in handles))
        assert all(sent)
        return [(await handle.wait()).value() for handle in handles]

    assert outcome_of(body) == [list(range(each))] * targets


def test_equal_events_are_different_events_and_one_reference_is_one_event() -> None:
    async def body(run: Run) -> list[int]:
        handle = await adder.start_as_child(run, 4)
        named = number_sent.with_("reference.id", "the one")
        await asyncio.gather(*(number_sent.send(handle, 1) for _ in range(2)), *(named.send(handle, 2) for _ in range(3)))
        await number_sent.send(handle, 3)
        return (await handle.wait()).value()

    assert outcome_of(body) == [1, 1, 2, 3]


def test_a_child_may_be_found_by_its_reference_beside_an_event_that_is_sent_to_it() -> None:
    async def body(run: Run) -> list[object]:
        named = adder.with_("reference.id", f"{run.id} child")
        first = await named.start_as_child(run, 2)
        second, is_sent, again, third = await asyncio.gather(
            named.start_as_child(run, 2), number_sent.send(first, 1), number_sent.send(first, 2), named.start_as_child(run, 2)
        )
        return [{first.id, second.id, third.id} == {first.id}, is_sent, again, (await second.wait()).value()]

    assert outcome_of(body) == [True, True, True, [1, 2]]


def test_a_run_that_tells_itself_something_hears_it() -> None:
    async def body(run: Run) -> list[int]:
        itself = run.peer(run.id)
        waiting = asyncio.create_task(number_sent.wait(run))
        sent = await asyncio.gather(*(number_sent.send(itself, number) for number in range(3)))
        assert sent == [True] * 3
        return [(await waiting).data, (await number_sent.wait(run)).data, (await number_sent.wait(run)).data]

    assert outcome_of(body) == [0, 1, 2]


def test_large_inputs_events_and_outputs_go_through() -> None:
    @workflow("reader").v("1")
    async def reader(run: Run, text: str) -> str:
        return text + (await text_sent.wait(run)).data

    async def body(run: Run) -> int:
        handles = await asyncio.gather(*(echo.start_as_child(run, LARGE + str(number)) for number in range(7)))
        ends = await asyncio.gather(*(handle.wait() for handle in handles))
        await asyncio.gather(*(text_sent.send(run.peer(run.id), LARGE + str(number)) for number in range(3)))
        texts = [(await text_sent.wait(run)).data for _ in range(3)]
        assert [text[-1] for text in texts] == ["0", "1", "2"]
        return sum(len(end.value()) for end in ends) + sum(map(len, texts))

    assert outcome_of(body) == 10 * 200_001


@pytest.mark.parametrize("letter", ["é", "字"])
def test_outputs_that_only_bytes_can_measure_go_through(letter: str) -> None:
    @task("enlarge")
    async def enlarge(number: int) -> str:
        return letter * (240_000 // len(letter.encode()))

    async def body(run: Run) -> int:
        texts = await asyncio.gather(*(enlarge.start(run, number) for number in range(3)))
        handles = await asyncio.gather(*(echo.start_as_child(run, text) for text in texts))
        return sum([len((await handle.wait()).value()) for handle in handles])

    assert outcome_of(body) == 3 * (240_000 // len(letter.encode()))


async def start_too_large(run: Run) -> None:
    await echo.start_as_child(run, TOO_LARGE)


async def send_too_large(run: Run) -> None:
    await text_sent.send(run.peer(run.id), TOO_LARGE)


async def return_too_large(run: Run) -> str:
    return TOO_LARGE


@pytest.mark.parametrize(
    ("body", "place"),
    [(start_too_large, "echo: input"), (send_too_large, "text-sent: data"), (return_too_large, "caller: output")],
)
def test_what_is_too_large_is_refused_with_its_place_before_anything_is_sent(
    body: Callable[[Run], Awaitable[Any]], place: str
) -> None:
    version = version_of(body)
    with Harness(version, echo) as harness:

        async def scenario() -> None:
            handle = await version.start(harness.client)
            state = (await handle.wait()).state
            assert isinstance(state, Failed)
            assert state.error.name == "PayloadTooLarge"
            assert state.error.message.startswith(f"{place} has 300002 bytes")
            assert not any(isinstance(record, CallEnded) for record in harness.records(handle.id))

        harness.run(scenario())


def test_the_large_output_of_a_child_outlives_the_child_in_its_parent() -> None:
    lengths: list[int] = []

    async def body(run: Run) -> int:
        handle = await echo.start_as_child(run, LARGE)
        lengths.append(len((await handle.wait()).value()))
        await asyncio.sleep(3_600)
        return lengths[-1]

    table, version = MemoryTable(), version_of(body)
    reads: list[object] = []
    faulty = FaultyTable(table)
    with Harness(version, echo, table=faulty) as harness:

        async def scenario() -> int:
            handle = await version.start(harness.client)
            await harness.settle()
            listed = await harness.client.api.call(ListRuns(workflow="echo", limit=1))
            child_id = listed.runs[0].id
            for item in rows_of(table, child_id):
                table.write([Delete(key_of(item))], token="deletion")
            faulty.before_read = reads.append
            output: int = (await handle.wait()).value()
            assert not any(isinstance(read, Key) and child_id in read.pk for read in reads)
            return output

        assert harness.run(scenario()) == len(LARGE)
    assert lengths == [len(LARGE)] * 2


def rows_of(table: MemoryTable, run_id: str) -> list[Item]:
    """Everything that is stored of a run."""
    whole = Query(keys.header(NAMESPACE, run_id).pk, low="", high="~")
    return [item for item in table.query(whole).items]
