"""Sleeps, events and deadlines, alone and together: each takes its time, and the branch that was taken is taken again."""

import asyncio
from datetime import timedelta

import pytest

from aiki_push import Received, Run, Slept, TimedOut, event, exponential, task, workflow
from aiki_push.domain.log_records import Received as ReceivedRecord
from aiki_push.domain.log_records import WaitEnded
from aiki_push.testing import Harness
from tests.integration.hours import HOUR_MS, hours_of

go = event("go")
paid = event("paid", int)


def test_a_timeout_around_a_long_task_fires_on_time_and_the_handler_is_cancelled() -> None:
    cancelled: list[str] = []

    @task("ten-minutes")
    async def ten_minutes() -> str:
        try:
            await asyncio.sleep(600)
        except asyncio.CancelledError:
            cancelled.append("ten-minutes")
            raise
        return "done"

    @workflow("hasty").v("1")
    async def hasty(run: Run) -> str:
        try:
            async with asyncio.timeout(5):
                return await ten_minutes.start(run)
        except TimeoutError:
            return "too slow"

    with Harness(hasty) as harness:
        output, hours = harness.run(hours_of(harness, hasty))
    assert (output, cancelled) == ("too slow", ["ten-minutes"])
    assert hours * 3_600 == pytest.approx(5, abs=0.05)


@pytest.mark.parametrize("first", ["event", "sleep", "child"])
def test_the_first_of_an_event_a_sleep_and_a_child_resumes_the_run_once_and_for_good(first: str) -> None:
    taken: list[str] = []

    @workflow("child").v("1")
    async def child(run: Run, hours: int) -> int:
        await run.sleep("work", timedelta(hours=hours))
        return hours

    @workflow("racer").v("1")
    async def racer(run: Run) -> str:
        handle = await child.start_as_child(run, 1 if first == "child" else 9)
        runners = {
            asyncio.create_task(go.wait(run), name="event"),
            asyncio.create_task(run.sleep("nap", timedelta(hours=1 if first == "sleep" else 8)), name="sleep"),
            asyncio.create_task(handle.wait(), name="child"),
        }
        done, losers = await asyncio.wait(runners, return_when=asyncio.FIRST_COMPLETED)
        for loser in losers:
            loser.cancel()
        winner = done.pop().get_name()
        taken.append(winner)
        for nap in range(4):
            await run.sleep(f"later-{nap}", timedelta(days=1))
            taken.append(winner)
        return winner

    with Harness(racer, child) as harness:

        async def scenario() -> None:
            handle = await racer.start(harness.client)
            await harness.settle()
            if first == "event":
                await go.send(handle)
            assert (await handle.wait()).value() == first
            # Five replays and the first time: at every resumption the whole of it runs again, and takes the same branch.
            assert set(taken) == {first}
            assert harness.segments(handle.id) == 6
            ends = [one for one in harness.records(handle.id) if isinstance(one, WaitEnded | ReceivedRecord)]
            assert len(ends) == 5

        harness.run(scenario())


def test_the_deadline_of_a_cancelled_branch_never_fires() -> None:
    @workflow("racer").v("1")
    async def racer(run: Run) -> list[bool]:
        loser = asyncio.create_task(paid.wait(run, timeout=timedelta(hours=2)))
        await run.sleep("short", timedelta(hours=1))
        loser.cancel()
        # The same event again: the deadline of the first wait, an hour from now, must not end this one.
        again = await paid.wait(run, timeout=timedelta(hours=3))
        return [isinstance(again, TimedOut)]

    with Harness(racer) as harness:
        output, hours = harness.run(hours_of(harness, racer))
    assert output == [True]
    assert hours == pytest.approx(4, abs=0.001)


def test_an_event_sent_before_anybody_waits_is_there_when_somebody_does() -> None:
    @workflow("late").v("1")
    async def late(run: Run) -> list[int]:
        await run.sleep("first", timedelta(hours=1))
        first = await paid.wait(run)
        second = await paid.wait(run)
        return [first.data, second.data]

    with Harness(late) as harness:

        async def scenario() -> None:
            handle = await late.start(harness.client)
            assert await paid.send(handle, 1)
            assert await paid.send(handle, 2)
            assert (await handle.wait()).value() == [1, 2]
            assert harness.segments(handle.id) == 2

        harness.run(scenario())


def test_an_event_at_the_instant_of_the_deadline_wins() -> None:
    @workflow("tied").v("1")
    async def tied(run: Run) -> str:
        match await paid.wait(run, timeout=timedelta(hours=1)):
            case Received(data=amount):
                return f"paid {amount}"
            case TimedOut():
                return "timed out"

    with Harness(tied) as harness:

        async def scenario() -> str:
            handle = await tied.start(harness.client)
            await harness.settle()
            deadline = harness.header(handle.id).due_at
            assert deadline is not None
            await asyncio.sleep((deadline - harness.now) / 1_000)
            assert harness.now == deadline
            await paid.send(handle, 7)
            return (await handle.wait()).value()

        assert harness.run(scenario()) == "paid 7"


def test_the_second_attempt_of_a_workflow_starts_its_clocks_anew() -> None:
    attempts: list[int] = []

    @workflow("retried").v("1", retry=exponential(max_attempts=2, base_delay_ms=HOUR_MS))
    async def retried(run: Run) -> str:
        attempts.append(run.attempt)
        got = await paid.wait(run, timeout=timedelta(hours=2))
        if run.attempt == 1:
            assert isinstance(got, TimedOut)
            raise RuntimeError("attempt 1")
        return "timed out again" if isinstance(got, TimedOut) else "paid"

    with Harness(retried) as harness:
        output, hours = harness.run(hours_of(harness, retried))
    assert output == "timed out again"
    assert hours == pytest.approx(5, abs=0.001)


def test_what_an_attempt_received_and_slept_is_not_waited_for_again() -> None:
    @workflow("retried").v("1", retry=exponential(max_attempts=2, base_delay_ms=HOUR_MS))
    async def retried(run: Run) -> list[object]:
        got = await paid.wait(run)
        slept: Slept = await run.sleep("nap", timedelta(hours=10))
        if run.attempt == 1:
            raise RuntimeError("attempt 1")
        return [got.data, slept.woken_early]

    with Harness(retried) as harness:

        async def scenario() -> None:
            began_at = harness.now
            handle = await retried.start(harness.client)
            await paid.send(handle, 5)
            assert (await handle.wait()).value() == [5, False]
            assert (harness.now - began_at) / HOUR_MS == pytest.approx(11, abs=0.001)

        harness.run(scenario())


def test_an_event_sent_before_a_deadline_goes_before_it_though_the_executor_was_not_told_of_it_yet() -> None:
    @task("long")
    async def long() -> None:
        await asyncio.sleep(60)

    @workflow("busy").v("1")
    async def busy(run: Run) -> str:
        working = asyncio.create_task(long.start(run))
        got = await paid.wait(run, timeout=timedelta(seconds=10))
        await working
        return "timed out" if isinstance(got, TimedOut) else f"paid {got.data}"

    with Harness(busy) as harness:

        async def scenario() -> str:
            handle = await busy.start(harness.client)
            # Between two questions for news: the executor hears of nothing before the deadline has passed.
            await asyncio.sleep(9.9)
            await paid.send(handle, 7)
            return (await handle.wait()).value()

        assert harness.run(scenario()) == "paid 7"
