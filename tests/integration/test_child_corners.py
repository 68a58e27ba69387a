"""Children at awkward moments: of runs that are executed anew, tried again, cancelled by them, or wait for them twice."""

import asyncio

from aiki_push import ChildHandle, Failed, Finished, Run, fixed, workflow
from aiki_push.domain.log_records import CallEnded, WaitEnded
from aiki_push.errors import NotDurable
from aiki_push.ports.api.runs import ListRuns
from aiki_push.testing import Harness
from tests.integration.cornered import HOUR, outcome_of, version_of


def test_a_wait_that_is_cancelled_by_what_its_neighbour_got_takes_nothing() -> None:
    @workflow("child").v("1")
    async def child(run: Run) -> str:
        await asyncio.sleep(60)
        return "ended"

    async def body(run: Run) -> list[object]:
        handle = await child.start_as_child(run)
        second: asyncio.Task[Finished[str]] | None = None

        async def first() -> str:
            ended = await handle.wait()
            assert second is not None
            second.cancel()
            return ended.value()

        one = asyncio.create_task(first())
        second = asyncio.create_task(handle.wait())
        await asyncio.wait([one, second])
        return [one.result(), second.cancelled(), (await handle.wait()).value()]

    assert outcome_of(body, others=(child,)) == ["ended", True, "ended"]


def test_a_handle_of_an_earlier_execution_is_refused_by_name() -> None:
    @workflow("child").v("1")
    async def child(run: Run) -> None:
        await asyncio.sleep(60)

    kept: list[ChildHandle[None]] = []

    async def body(run: Run) -> None:
        handle = await child.start_as_child(run)
        kept.append(handle)
        await kept[0].wait()

    version = version_of(body)
    with Harness(version, child) as harness:

        async def scenario() -> None:
            state = (await (await version.start(harness.client)).wait()).state
            assert isinstance(state, Failed)
            assert state.error.name == NotDurable.__name__
            assert "another event loop" in state.error.message

        harness.run(scenario())


def test_a_child_is_the_same_in_the_next_attempt_whether_its_parent_had_waited_for_it_or_not() -> None:
    @workflow("child").v("1")
    async def child(run: Run) -> str:
        await asyncio.sleep(2 * 3_600)
        return run.id

    ids: list[str] = []

    @workflow("parent").v("1", retry=fixed(max_attempts=3, delay_ms=60_000))
    async def parent(run: Run) -> list[object]:
        handle = await child.start_as_child(run)
        ids.append(handle.id)
        first = await handle.wait(timeout=HOUR)
        if run.attempt == 1:
            raise RuntimeError("attempt 1")
        second = await handle.wait()
        if run.attempt == 2:
            raise RuntimeError("attempt 2")
        assert isinstance(first, Finished)
        return [first.value(), second.value()]

    with Harness(parent, child) as harness:

        async def scenario() -> None:
            handle = await parent.start(harness.client)
            assert (await handle.wait()).value() == [ids[0]] * 2
            assert len(set(ids)) == 1
            started = [one for one in harness.records(handle.id) if isinstance(one, CallEnded)]
            timed_out = [one for one in harness.records(handle.id) if isinstance(one, WaitEnded)]
            assert (len(started), len(timed_out)) == (1, 1)

        harness.run(scenario())


def test_a_child_that_cancels_its_parent_goes_with_it() -> None:
    after: list[str] = []

    @workflow("child").v("1")
    async def child(run: Run, parent_id: str) -> None:
        await run.sleep("first", HOUR)
        await run.peer(parent_id).cancel("enough")
        await run.sleep("second", HOUR)
        after.append("went on")

    async def body(run: Run) -> None:
        await (await child.start_as_child(run, run.id)).wait()
        after.append("heard of it")

    version = version_of(body)
    with Harness(version, child) as harness:

        async def scenario() -> list[tuple[str, str]]:
            await (await version.start(harness.client)).wait()
            await asyncio.sleep(3_600 * 3)
            listed = await harness.client.api.call(ListRuns(limit=10))
            return sorted((run.workflow, run.state.status) for run in listed.runs)

        assert harness.run(scenario()) == [("child", "cancelled"), ("cornered", "cancelled")]
    assert after == []
