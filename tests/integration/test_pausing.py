"""Pausing and resuming runs, wherever they are, while an executor works on them too."""

import asyncio
from datetime import timedelta

import pytest

from aiki_push import Run, event, exponential, task, task_info, workflow
from aiki_push.domain.log_records import TaskCompleted, TaskStarted
from aiki_push.testing import Harness

HOUR_MS = 3_600_000

go = event("go")


def test_a_task_that_a_pause_cut_off_runs_again_without_using_an_attempt() -> None:
    attempts: list[int] = []
    ended: list[str] = []

    @task("slow", retry=exponential(max_attempts=2, base_delay_ms=1_000))
    async def slow() -> int:
        attempts.append(task_info().attempt)
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            ended.append("cut off")
            raise
        return task_info().attempt

    @workflow("pausable").v("1")
    async def pausable(run: Run) -> int:
        return await slow.start(run)

    with Harness(pausable) as harness:

        async def scenario() -> None:
            handle = await pausable.start(harness.client)
            await asyncio.sleep(10)
            assert (await handle.pause()).state.status == "paused"
            await asyncio.sleep(10)
            # Its executor heard of it within a second or so, and stopped the handler.
            assert (ended, harness.header(handle.id).state.status) == (["cut off"], "paused")
            await asyncio.sleep(3_600)
            assert attempts == [1]
            await handle.resume()
            assert (await handle.wait()).value() == 1
            assert attempts == [1, 1]
            started = [one.attempt for one in harness.records(handle.id) if isinstance(one, TaskStarted)]
            assert started == [1, 1]

        harness.run(scenario())


def test_many_pauses_are_no_interruptions() -> None:
    @task("slow")
    async def slow() -> str:
        await asyncio.sleep(60)
        return "done"

    @workflow("pausable").v("1")
    async def pausable(run: Run) -> str:
        return await slow.start(run)

    with Harness(pausable) as harness:

        async def scenario() -> None:
            handle = await pausable.start(harness.client)
            for _ in range(10):
                await asyncio.sleep(10)
                await handle.pause()
                await asyncio.sleep(10)
                await handle.resume()
            assert (await handle.wait()).value() == "done"

        harness.run(scenario())


@pytest.mark.parametrize("paused_hours", [1, 5])
def test_a_delayed_start_keeps_its_time_through_pause_and_resume(paused_hours: int) -> None:
    @workflow("delayed").v("1")
    async def delayed(run: Run) -> str:
        return "done"

    with Harness(delayed) as harness:

        async def scenario() -> float:
            began_at = harness.now
            handle = await delayed.with_("delay", timedelta(hours=3)).start(harness.client)
            await handle.pause()
            await asyncio.sleep(paused_hours * 3_600)
            assert harness.header(handle.id).state.status == "paused"
            await handle.resume()
            await handle.wait()
            return (harness.now - began_at) / HOUR_MS

        assert harness.run(scenario()) == pytest.approx(max(3, paused_hours), abs=0.001)


def test_a_paused_run_takes_its_messages_once_it_is_resumed() -> None:
    @workflow("waiting").v("1")
    async def waiting(run: Run) -> str:
        await go.wait(run)
        return "went"

    with Harness(waiting) as harness:

        async def scenario() -> None:
            handle = await waiting.start(harness.client)
            await harness.settle()
            await handle.pause()
            assert await go.send(handle)
            await asyncio.sleep(3_600)
            assert harness.header(handle.id).state.status == "paused"
            await handle.resume()
            assert (await handle.wait()).value() == "went"

        harness.run(scenario())


def test_deadlines_go_on_while_a_run_is_paused() -> None:
    @workflow("sleeper").v("1")
    async def sleeper(run: Run) -> str:
        await run.sleep("nap", timedelta(hours=2))
        return "rested"

    with Harness(sleeper) as harness:

        async def scenario() -> float:
            began_at = harness.now
            handle = await sleeper.start(harness.client)
            await harness.settle()
            await handle.pause()
            await asyncio.sleep(3_600)
            await handle.resume()
            assert harness.header(handle.id).state.status == "sleeping"
            await handle.wait()
            return (harness.now - began_at) / HOUR_MS

        assert harness.run(scenario()) == pytest.approx(2, abs=0.001)


def test_a_run_that_is_cancelled_in_the_middle_of_its_tasks_does_nothing_more() -> None:
    effects: list[int] = []

    @task("step")
    async def step(number: int) -> int:
        await asyncio.sleep(10)
        effects.append(number)
        return number

    @workflow("stepping").v("1")
    async def stepping(run: Run) -> None:
        for number in range(100):
            await step.start(run, number)

    with Harness(stepping) as harness:

        async def scenario() -> None:
            handle = await stepping.start(harness.client)
            await asyncio.sleep(35)
            await handle.cancel("enough")
            done = list(effects)
            await asyncio.sleep(3_600)
            assert effects == done
            completed = [one for one in harness.records(handle.id) if isinstance(one, TaskCompleted)]
            assert len(completed) <= len(done) <= len(completed) + 1
            view = await handle.refresh()
            assert (view.state.status, view.explanation) == ("cancelled", "enough")

        harness.run(scenario())
