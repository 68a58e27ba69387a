"""Runs that wait for time, for events and for each other, across processes."""

import pytest

from tests.e2e.processes import Processes, until
from tests.e2e.stage import Stage
from tests.e2e.system import end_of, system_in, transitions
from tests.e2e.waiting import expects, family, listens, rests, told

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]

IDLE_TIMEOUT_MS = 600_000
"""Far beyond every test: whatever goes on here, it is not because a claim went stale."""

STORES = pytest.mark.parametrize("store", ["memory", "moto"])


@STORES
async def test_a_parent_is_given_the_ends_of_three_children_on_two_endpoints(
    processes: Processes, stage: Stage, store: str
) -> None:
    async with system_in(processes, store=store, idle_timeout_ms=IDLE_TIMEOUT_MS) as system:
        await system.register(system.start_endpoint("A"), "a")
        await system.register(system.start_endpoint("B"), "b")

        handle = await family.with_("pool", "a").start(system.client, ["a", "b", "b"])

        assert (await end_of(handle)).value() == ["0: first by A", "1: first by B", "2: first by B"]
        children = await system.children(handle.id)
        assert {*children} == await system.runs_of("one-step")
        for child, executor in zip(children, "ABB", strict=True):
            assert await system.story(child) == ["queued: new", "running", "completed"]
            assert stage.effects(child) == [(executor, "first", "began"), (executor, "first", "ended")]
        # How often it was woken depends on how close together they ended; it was never taken from its executor.
        story = await system.story(handle.id)
        assert {*story[2:-1]} <= {"awaiting_child_workflow", "queued: child_workflow", "running"}


async def test_an_event_that_is_sent_before_the_run_waits_for_it_is_there_when_it_does(
    processes: Processes, stage: Stage
) -> None:
    async with system_in(processes, idle_timeout_ms=IDLE_TIMEOUT_MS) as system:
        stage.close_gate("A", "second")
        early = await expects.start(system.client, None)
        busy = await expects.start(system.client, None)
        # One run has not begun; the other one is in the middle of the task that it waits after.
        assert await told.send(early, "before everything")
        await system.register(system.start_endpoint("A"))
        until(lambda: stage.has(busy.id, "A", "second", "began"), "the run in its task")
        assert await told.send(busy, "meanwhile")
        stage.open_gate("A", "second")

        assert (await end_of(early)).value() == "before everything"
        assert (await end_of(busy)).value() == "meanwhile"
        for handle in (early, busy):
            assert await system.story(handle.id) == ["queued: new", "running", "completed"]


@STORES
async def test_an_event_reaches_a_run_whose_executor_is_in_the_middle_of_a_task(
    processes: Processes, stage: Stage, store: str
) -> None:
    async with system_in(processes, store=store, idle_timeout_ms=IDLE_TIMEOUT_MS) as system:
        stage.close_gate("A", "second")
        await system.register(system.start_endpoint("A"))
        handle = await listens.start(system.client)
        until(lambda: stage.has(handle.id, "A", "second", "began"), "the run in its task")

        assert await told.send(handle, "fire")
        until(lambda: stage.has(handle.id, "A", "third", "ended"), "what the event has led to")

        assert ("A", "second", "ended") not in stage.effects(handle.id)
        assert await system.standing(handle.id) == (1, "running", "A")
        stage.open_gate("A", "second")
        assert (await end_of(handle)).value() == ["second by A", "fire, third by A"]
        assert await transitions(handle) == [(0, "queued", None), (1, "running", "A"), (2, "completed", "A")]


async def test_a_run_that_waits_for_an_event_goes_on_when_it_comes_and_another_when_its_time_is_up(processes: Processes) -> None:
    async with system_in(processes, store="moto", idle_timeout_ms=IDLE_TIMEOUT_MS) as system:
        await system.register(system.start_endpoint("A"))
        hopeful, patient = await expects.start(system.client, 2_000), await expects.start(system.client, 3_600_000)
        await system.until_status(patient.id, "awaiting_event")
        assert await told.send(patient, "at last")

        assert (await end_of(hopeful)).value() == "nobody"
        assert (await end_of(patient)).value() == "at last"
        parked = ["queued: new", "running", "awaiting_event"]
        assert await system.story(hopeful.id) == [*parked, "queued: event_wait_timeout", "running", "completed"]
        assert await system.story(patient.id) == [*parked, "queued: event", "running", "completed"]
        assert not await told.send(patient, "too late")


async def test_a_run_that_sleeps_needs_no_process_and_goes_on_in_one_that_did_not_exist(
    processes: Processes, stage: Stage
) -> None:
    async with system_in(processes, store="moto", idle_timeout_ms=IDLE_TIMEOUT_MS) as system:
        stage.close_gate("A", "second")
        a = system.start_endpoint("A")
        await system.register(a)
        handle = await rests.start(system.client, 2_000)
        until(lambda: stage.has(handle.id, "A", "second", "began"), "the run in its task")
        await system.deregister(a)
        stage.open_gate("A", "second")
        await system.until_revision(handle.id, 2)
        a.process.kill()
        # Its time comes while nobody is there.
        await system.until_status(handle.id, "queued")
        assert await system.story(handle.id) == ["queued: new", "running", "sleeping", "queued: wakeup"]

        await system.register(system.start_endpoint("C"))
        until(lambda: stage.has(handle.id, "C", "third", "ended"), "what it does after its nap")
        await system.until_status(handle.id, "sleeping")
        await handle.wakeup("rest")

        assert (await end_of(handle)).value() == [False, True]
        assert stage.effects(handle.id) == [
            (executor, task, what) for executor, task in (("A", "second"), ("C", "third")) for what in ("began", "ended")
        ]
        assert (await system.story(handle.id))[4:] == [
            *("running", "sleeping", "queued: wakeup_early"),
            *("running", "completed"),
        ]
