"""Workflows in virtual time."""

import asyncio
import threading
from collections.abc import Iterator
from datetime import timedelta

import pytest

from aiki_push import Cancelled, Run, TimedOut, exponential, task, workflow
from aiki_push.domain.log_records import TaskBackingOff, TaskCompleted, TaskStarted, Transition
from aiki_push.domain.run_states import Queued, Stalled
from aiki_push.testing import FAKE_NOW, Harness, replay
from tests.integration.sleepers import bell, doze, dozing, hanging, listening, month, parent, sleepers

DAY_MS = 86_400_000


@pytest.fixture(name="harness")
def harness_of_sleepers() -> Iterator[Harness]:
    with Harness(month, dozing, hanging, listening, parent) as harness:
        yield harness


def test_a_month_is_over_at_once_and_costs_two_segments(harness: Harness) -> None:
    async def scenario() -> str:
        handle = await month.start(harness.client, "you")
        assert (await handle.wait()).value() == "hello you"
        return handle.id

    run_id = harness.run(scenario())
    assert harness.segments(run_id) == 2
    (done,) = [record for record in harness.records(run_id) if isinstance(record, TaskCompleted)]
    assert done.at == FAKE_NOW + 30 * DAY_MS <= harness.now


def test_the_scenarios_own_sleeps_are_in_the_same_time(harness: Harness) -> None:
    async def scenario() -> tuple[str, str]:
        handle = await month.start(harness.client, "you")
        await asyncio.sleep(29 * 86_400)
        before = (await handle.refresh()).state.status
        await asyncio.sleep(2 * 86_400)
        return before, (await handle.refresh()).state.status

    assert harness.run(scenario()) == ("sleeping", "completed")
    assert harness.now == FAKE_NOW + 31 * DAY_MS


def test_a_wait_times_out_in_virtual_time(harness: Harness) -> None:
    async def scenario() -> bool:
        handle = await month.start(harness.client, "you")
        return isinstance(await handle.wait(timeout=timedelta(days=29)), TimedOut)

    assert harness.run(scenario())
    assert harness.now == FAKE_NOW + 29 * DAY_MS


def test_a_handler_that_sleeps_is_cut_off_by_the_workflows_timeout(harness: Harness) -> None:
    async def scenario() -> str:
        handle = await dozing.start(harness.client)
        await harness.settle()
        assert harness.now == FAKE_NOW + 5_000
        return (await handle.wait()).value()

    assert harness.run(scenario()) == "too slow"


def test_a_task_is_tried_again_after_each_backoff_and_the_run_is_parked_meanwhile() -> None:
    began: list[int] = []

    @task("flaky", retry=exponential(max_attempts=4, base_delay_ms=60_000, factor=2))
    async def flaky() -> int:
        began.append(harness.now - FAKE_NOW)
        if len(began) < 4:
            raise OSError("not yet")
        return len(began)

    @sleepers.v("flaky")
    async def retrying(run: Run) -> int:
        return await flaky.start(run)

    async def scenario() -> str:
        handle = await retrying.start(harness.client)
        assert (await handle.wait()).value() == 4
        return handle.id

    with Harness(retrying) as harness:
        run_id = harness.run(scenario())
        assert began == [0, 60_000, 180_000, 420_000]
        assert harness.segments(run_id) == 4
        assert sum(isinstance(record, TaskBackingOff) for record in harness.records(run_id)) == 3


def test_a_handler_in_a_thread_takes_no_virtual_time() -> None:
    threads: list[str] = []

    @task("in-thread")
    def in_thread() -> str:
        threads.append(threading.current_thread().name)
        return "done"

    @sleepers.v("thread")
    async def threaded(run: Run) -> str:
        async with asyncio.timeout(0.5):
            return await in_thread.start(run)

    async def scenario() -> str:
        handle = await threaded.start(harness.client)
        await harness.settle()
        assert harness.now == FAKE_NOW
        return (await handle.wait()).value()

    with Harness(threaded) as harness:
        assert (harness.run(scenario()), threads) == ("done", ["aiki-push task"])


def test_a_handler_in_a_thread_may_wait_for_what_another_run_does() -> None:
    go_on = threading.Event()

    @task("waits-in-thread")
    def waits_in_thread() -> bool:
        return go_on.wait(timeout=20)

    @task("goes-on")
    async def goes_on() -> None:
        go_on.set()

    @sleepers.v("waiting")
    async def waiting(run: Run) -> bool:
        return await waits_in_thread.start(run)

    @sleepers.v("releasing")
    async def releasing(run: Run) -> None:
        await goes_on.start(run)

    async def scenario() -> bool:
        handle = await waiting.start(harness.client)
        await releasing.start(harness.client)
        return (await handle.wait()).value()

    with Harness(waiting, releasing) as harness:
        assert harness.run(scenario())


def test_two_runs_go_on_side_by_side(harness: Harness) -> None:
    async def scenario() -> list[str]:
        handles = [await month.start(harness.client, "you"), await dozing.start(harness.client)]
        return [result.value() for result in await asyncio.gather(*(handle.wait() for handle in handles))]

    assert harness.run(scenario()) == ["hello you", "too slow"]
    assert FAKE_NOW + 30 * DAY_MS <= harness.now < FAKE_NOW + 30 * DAY_MS + 5_000


def test_an_event_ends_a_wait_at_the_time_when_it_is_sent(harness: Harness) -> None:
    async def scenario() -> str:
        handle = await listening.start(harness.client)
        await asyncio.sleep(86_400)
        await bell.send(handle, "ding")
        assert (await handle.wait()).value() == "ding"
        return handle.id

    run_id = harness.run(scenario())
    assert harness.segments(run_id) == 2
    assert [(message.key, message.at) for message in harness.messages(run_id)] == [("bell", FAKE_NOW + DAY_MS)]
    assert replay(listening, harness.records(run_id), messages=harness.messages(run_id)).output == "ding"


def test_a_parent_goes_on_when_its_child_has_ended(harness: Harness) -> None:
    async def scenario() -> str:
        handle = await parent.start(harness.client)
        assert (await handle.wait()).value() == "hello child"
        return handle.id

    assert harness.segments(harness.run(scenario())) == 2
    assert FAKE_NOW + 30 * DAY_MS <= harness.now < FAKE_NOW + 30 * DAY_MS + 1_000


def test_a_run_that_is_being_executed_ends_soon_after_it_is_cancelled(harness: Harness) -> None:
    async def scenario() -> object:
        handle = await hanging.start(harness.client)
        await asyncio.sleep(3_600)
        await handle.cancel("enough")
        return (await handle.wait()).state

    assert harness.run(scenario()) == Cancelled(explanation="enough")
    assert harness.now <= FAKE_NOW + 3_602_000


def test_a_crashed_execution_is_recovered_once_its_claim_is_stale() -> None:
    began: list[int] = []

    @task("slow")
    async def slow() -> str:
        began.append(harness.now - FAKE_NOW)
        await asyncio.sleep(10)
        return "done"

    @sleepers.v("slow")
    async def working(run: Run) -> str:
        return await slow.start(run)

    async def scenario() -> str:
        handle = await working.start(harness.client)
        await asyncio.sleep(4)
        harness.crash(handle.id)
        assert (await handle.wait()).value() == "done"
        return handle.id

    with Harness(working) as harness:
        run_id = harness.run(scenario())
        assert began == [0, 90_000]
        assert harness.segments(run_id) == 2
        states = [record.state for record in harness.records(run_id) if isinstance(record, Transition)]
        assert Queued(reason="recovery") in states
        assert [record.attempt for record in harness.records(run_id) if isinstance(record, TaskStarted)] == [1, 1]


def test_a_claim_is_kept_while_a_handler_takes_longer_than_it_lives() -> None:
    @sleepers.v("long")
    async def long(run: Run) -> str:
        return await doze.start(run, 3_600.0)

    async def scenario() -> str:
        handle = await long.start(harness.client)
        assert (await handle.wait()).value() == "dozed 3600.0 s"
        return handle.id

    with Harness(long) as harness:
        assert harness.segments(harness.run(scenario())) == 1


def test_changed_code_takes_the_place_of_the_old() -> None:
    @workflow("sleeper").v("month")
    async def changed(run: Run, name: str) -> str:
        await doze.start(run, 1.0)
        await asyncio.sleep(30 * 86_400)
        return "changed"

    async def scenario() -> object:
        handle = await changed.start(harness.client, "you")
        await asyncio.sleep(86_400)
        harness.add(month)
        await asyncio.sleep(30 * 86_400)
        return (await handle.refresh()).state

    with Harness(changed) as harness:
        assert harness.run(scenario()) == Stalled(reason="diverged")


def test_the_same_scenario_has_the_same_history(harness: Harness) -> None:
    async def scenario(harness: Harness) -> list[str]:
        handles = [
            await month.start(harness.client, "you"),
            await dozing.start(harness.client),
            await month.start(harness.client, "me"),
        ]
        await asyncio.gather(*(handle.wait() for handle in handles))
        return [handle.id for handle in handles]

    with Harness(month, dozing, hanging) as other:
        runs, others = harness.run(scenario(harness)), other.run(scenario(other))
        assert runs == others
        assert [harness.records(run_id) for run_id in runs] == [other.records(run_id) for run_id in others]
