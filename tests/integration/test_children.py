"""Children: started once, waited for in every way, ended with their parent where that is cancelled."""

import asyncio
from datetime import timedelta

import pytest

from aiki_push import Cancelled, Failed, Run, TimedOut, event, exponential, task, workflow
from aiki_push.adapters.storage.memory.table import MemoryTable
from aiki_push.domain.run import Run as Header
from aiki_push.domain.run_states import ChildWorkflowCause, SelfCause
from aiki_push.errors import ChildFailed, ReferenceConflict
from aiki_push.ports.api.runs import ListRuns
from aiki_push.testing import CountingTable, Harness

go = event("go")


async def all_runs(harness: Harness) -> list[Header]:
    listed = await harness.client.api.call(ListRuns(limit=100))
    return [harness.header(run.id) for run in listed.runs]


@workflow("worker").v("1")
async def worker(run: Run, hours: int) -> int:
    await run.sleep("work", timedelta(hours=hours))
    return hours


@workflow("failing").v("1")
async def failing(run: Run) -> None:
    raise ValueError("no luck")


def test_a_child_that_is_not_waited_for_goes_on_when_its_parent_has_ended() -> None:
    @workflow("starter").v("1")
    async def starter(run: Run) -> str:
        return (await worker.start_as_child(run, 3)).id

    with Harness(starter, worker) as harness:

        async def scenario() -> None:
            child_id = (await (await starter.start(harness.client)).wait()).value()
            await harness.settle()
            child = await worker.get(harness.client, child_id)
            assert child.run.state.status == "sleeping"
            assert (await child.wait()).value() == 3

        harness.run(scenario())


def test_a_child_has_the_pool_and_the_priority_of_its_parent_unless_it_has_its_own() -> None:
    @workflow("starter").v("1")
    async def starter(run: Run) -> list[str]:
        inherits = await worker.start_as_child(run, 1)
        own = await worker.with_("pool", "own").with_("priority", 7).start_as_child(run, 1)
        return [inherits.id, own.id]

    with Harness(starter, worker) as harness:

        async def scenario() -> None:
            handle = await starter.with_("pool", "tenant").with_("priority", 2).start(harness.client)
            first, second = (await handle.wait()).value()
            options = [harness.header(run_id).options for run_id in (first, second)]
            assert [(one.pool, one.priority) for one in options] == [("tenant", 2), ("own", 7)]
            assert harness.header(first).parent == handle.id

        harness.run(scenario())


def test_equal_calls_are_different_children_and_one_reference_is_one_child() -> None:
    @workflow("starter").v("1")
    async def starter(run: Run) -> list[str]:
        equal = [await worker.start_as_child(run, 1) for _ in range(2)]
        named = [await worker.with_("reference.id", "the one").start_as_child(run, 1) for _ in range(2)]
        return [child.id for child in (*equal, *named)]

    with Harness(starter, worker) as harness:

        async def scenario() -> None:
            a, b, c, d = (await (await starter.start(harness.client)).wait()).value()
            assert len({a, b, c}) == 3
            assert c == d

        harness.run(scenario())


@pytest.mark.parametrize("policy", ["error", "return_existing"])
def test_a_reference_with_another_input_is_refused_or_gives_the_run_that_has_it(policy: str) -> None:
    @workflow("starter").v("1")
    async def starter(run: Run, policy: str) -> list[str]:
        first = await worker.with_("reference.id", "the one").start_as_child(run, 1)
        again = worker.with_("reference.id", "the one")
        if policy == "return_existing":
            again = again.with_("reference.conflict_policy", "return_existing")
        return [first.id, (await again.start_as_child(run, 2)).id]

    with Harness(starter, worker) as harness:

        async def scenario() -> None:
            handle = await starter.start(harness.client, policy)
            state = (await handle.wait()).state
            if policy == "error":
                assert isinstance(state, Failed)
                assert (state.cause, state.error.name) == (SelfCause(), ReferenceConflict.__name__)
            else:
                first, second = (await handle.wait()).value()
                assert first == second

        harness.run(scenario())


def test_a_parent_may_handle_a_refused_reference_and_does_so_on_every_replay() -> None:
    @workflow("starter").v("1")
    async def starter(run: Run) -> str:
        await worker.with_("reference.id", "the one").start_as_child(run, 1)
        try:
            await worker.with_("reference.id", "the one").start_as_child(run, 2)
        except ReferenceConflict:
            await run.sleep("nap", timedelta(hours=1))
            return "handled"
        return "not refused"

    with Harness(starter, worker) as harness:

        async def scenario() -> None:
            assert (await (await starter.start(harness.client)).wait()).value() == "handled"

        harness.run(scenario())


def test_a_wait_for_a_child_can_time_out_and_be_repeated_and_all_waits_get_the_same_end() -> None:
    @workflow("starter").v("1")
    async def starter(run: Run) -> list[object]:
        child = await worker.start_as_child(run, 3)
        first = await child.wait(timeout=timedelta(hours=1))
        second = await child.wait()
        third = await child.wait(timeout=timedelta(hours=1))
        assert not isinstance(third, TimedOut)
        return [isinstance(first, TimedOut), second.value(), third.value()]

    with Harness(starter, worker) as harness:

        async def scenario() -> None:
            assert (await (await starter.start(harness.client)).wait()).value() == [True, 3, 3]

        harness.run(scenario())


def test_the_failure_of_a_child_is_its_parents_only_if_nobody_handles_it() -> None:
    @workflow("careless").v("1")
    async def careless(run: Run) -> None:
        (await (await failing.start_as_child(run)).wait()).value()

    @workflow("careful").v("1")
    async def careful(run: Run) -> str:
        finished = await (await failing.start_as_child(run)).wait()
        try:
            finished.value()
        except ChildFailed as error:
            return error.error.message if error.error else ""
        return "it did not fail"

    with Harness(careless, careful, failing) as harness:

        async def scenario() -> None:
            handle = await careless.start(harness.client)
            state = (await handle.wait()).state
            assert isinstance(state, Failed)
            assert isinstance(state.cause, ChildWorkflowCause)
            child = await failing.get(harness.client, state.cause.run_id)
            assert child.run.state.status == "failed"
            assert (await (await careful.start(harness.client)).wait()).value() == "no luck"

        harness.run(scenario())


def test_a_failed_child_stays_failed_in_the_next_attempt_of_its_parent() -> None:
    children: list[str] = []

    @workflow("retried").v("1", retry=exponential(max_attempts=2, base_delay_ms=1_000))
    async def retried(run: Run) -> None:
        child = await failing.start_as_child(run)
        children.append(child.id)
        (await child.wait()).value()

    with Harness(retried, failing) as harness:

        async def scenario() -> None:
            assert isinstance((await (await retried.start(harness.client)).wait()).state, Failed)
            assert len(set(children)) == 1

        harness.run(scenario())


def test_a_cancelled_run_takes_all_its_descendants_with_it_and_whoever_waits_for_it_goes_on() -> None:
    handler_ended: list[str] = []

    @task("endless")
    async def endless() -> None:
        try:
            await asyncio.sleep(3_600_000)
        finally:
            handler_ended.append("endless")

    @workflow("level-4").v("1")
    async def level_4(run: Run, what: str) -> None:
        match what:
            case "task":
                await endless.start(run)
            case "sleep":
                await run.sleep("long", timedelta(days=9))
            case _:
                await go.wait(run)

    @workflow("level-3").v("1")
    async def level_3(run: Run) -> None:
        children = [await level_4.start_as_child(run, what) for what in ("task", "sleep", "event")]
        await asyncio.gather(*(child.wait() for child in children))

    @workflow("level-2").v("1")
    async def level_2(run: Run) -> None:
        await (await level_3.start_as_child(run)).wait()

    @workflow("level-1").v("1")
    async def level_1(run: Run) -> str:
        child = await level_2.start_as_child(run)
        state = (await child.wait()).state
        return f"{state.status}: {state.explanation}" if isinstance(state, Cancelled) else state.status

    with Harness(level_1, level_2, level_3, level_4) as harness:

        async def scenario() -> None:
            top = await level_1.start(harness.client)
            await asyncio.sleep(5)
            [child] = [run for run in await all_runs(harness) if run.workflow == "level-2"]
            of_level_2 = await level_2.get(harness.client, child.id)
            await of_level_2.cancel("not wanted any more")
            assert (await top.wait()).value() == "cancelled: not wanted any more"
            await asyncio.sleep(5)
            below = [run for run in await all_runs(harness) if run.workflow != "level-1"]
            assert {run.workflow: run.state.status for run in below} == {
                "level-2": "cancelled",
                "level-3": "cancelled",
                "level-4": "cancelled",
            }
            assert len(below) == 5
            assert all(run.duties == () and run.due_at is None for run in below)
            assert handler_ended == ["endless"]

        harness.run(scenario())


@pytest.mark.parametrize("children", [100, 1_000])
def test_many_children_wake_their_parent_a_few_times(children: int) -> None:
    @workflow("quick").v("1")
    async def quick(run: Run, number: int) -> int:
        # Ends are spread over two seconds.
        await run.sleep("work", timedelta(milliseconds=1_000 + number * 2_000 / children))
        return number

    @workflow("parent").v("1")
    async def parent(run: Run, count: int) -> int:
        handles = await asyncio.gather(*(quick.start_as_child(run, number) for number in range(count)))
        ends = await asyncio.gather(*(handle.wait() for handle in handles))
        return sum(end.value() for end in ends)

    table = CountingTable(MemoryTable())
    with Harness(parent, quick, table=table) as harness:

        async def scenario() -> None:
            handle = await parent.start(harness.client, children)
            assert (await handle.wait()).value() == sum(range(children))
            wakes = harness.segments(handle.id) - 1
            print(f"{children} children: {wakes} wake-ups, {table.counts}")
            assert wakes <= 10

        harness.run(scenario())
