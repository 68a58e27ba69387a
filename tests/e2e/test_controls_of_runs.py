"""Runs that are paused, resumed and cancelled while processes hold them."""

import signal

import pytest

from aiki_push import Cancelled
from tests.e2e.processes import Processes, until
from tests.e2e.stage import Stage
from tests.e2e.system import System, attempts, end_of, system_in, transitions
from tests.e2e.waiting import ancestor
from tests.e2e.workflows import three_steps

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]

IDLE_TIMEOUT_MS = 600_000
"""Far beyond every test: whatever ends here, it is not because a claim went stale."""

INTO_THE_SECOND = [("A", "first", "began"), ("A", "first", "ended"), ("A", "second", "began")]
CUT_OFF = [*INTO_THE_SECOND, ("A", "second", "cancelled")]
BY_A = ["first by A", "second by A", "third by A"]


async def another_run_ends(system: System) -> None:
    """Another run, executed from beginning to end by A; by then it would have shown what it does about the runs before it."""
    assert (await end_of(await three_steps.start(system.client))).value() == BY_A


async def test_a_task_that_a_pause_cuts_off_runs_again_after_the_resumption_and_uses_no_attempt(
    processes: Processes, stage: Stage
) -> None:
    async with system_in(processes, idle_timeout_ms=IDLE_TIMEOUT_MS) as system:
        stage.close_gate("A", "second")
        await system.register(system.start_endpoint("A"))
        handle = await three_steps.start(system.client)
        until(lambda: stage.has(handle.id, "A", "second", "began"), "A in its second task")

        assert (await handle.pause()).state.status == "paused"
        until(lambda: stage.has(handle.id, "A", "second", "cancelled"), "the task being cut off")
        stage.open_gate("A", "second")
        await another_run_ends(system)
        assert await system.standing(handle.id) == (2, "paused", None)
        assert stage.effects(handle.id) == CUT_OFF
        await handle.resume()

        assert (await end_of(handle)).value() == BY_A
        assert await system.story(handle.id) == [
            *("queued: new", "running", "paused"),
            *("queued: resumption", "running", "completed"),
        ]
        assert await attempts(handle) == [("first", 1), ("second", 1), ("second", 1), ("third", 1)]
        assert stage.effects(handle.id) == CUT_OFF + [
            ("A", task, what) for task in ("second", "third") for what in ("began", "ended")
        ]


async def test_a_frozen_executor_that_wakes_up_after_its_run_was_cancelled_does_nothing_more(
    processes: Processes, stage: Stage
) -> None:
    async with system_in(processes, store="moto", idle_timeout_ms=IDLE_TIMEOUT_MS) as system:
        stage.close_gate("A", "second")
        a = system.start_endpoint("A")
        await system.register(a)
        handle = await three_steps.start(system.client)
        until(lambda: stage.has(handle.id, "A", "second", "began"), "A in its second task")

        a.process.send(signal.SIGSTOP)
        await handle.cancel("ordered twice")
        assert (await end_of(handle)).state == Cancelled("ordered twice")
        stage.open_gate("A", "second")
        a.process.send(signal.SIGCONT)

        # What it was in the middle of may still have its effect before it hears; what would come next may not.
        until(lambda: len(stage.effects(handle.id)) > len(INTO_THE_SECOND), "A waking up")
        await another_run_ends(system)
        assert stage.effects(handle.id)[:3] == INTO_THE_SECOND
        assert stage.effects(handle.id)[3:] in ([("A", "second", "cancelled")], [("A", "second", "ended")])
        assert await transitions(handle) == [(0, "queued", None), (1, "running", "A"), (2, "cancelled", None)]
        assert await attempts(handle) == [("first", 1), ("second", 1)]


async def test_the_whole_tree_is_cancelled_with_its_root(processes: Processes, stage: Stage) -> None:
    async with system_in(processes, store="moto", idle_timeout_ms=IDLE_TIMEOUT_MS) as system:
        stage.close_gate("A", "first")
        await system.register(system.start_endpoint("A"))
        handle = await ancestor.start(system.client)
        await system.until_status(handle.id, "awaiting_child_workflow")
        working, sleeping, waiting, guarding = await system.children(handle.id)
        until(lambda: stage.has(working, "A", "first", "began"), "the child in its task")
        await system.until_status(sleeping, "sleeping")
        await system.until_status(waiting, "awaiting_event")
        await system.until_status(guarding, "awaiting_child_workflow")
        [guarded] = await system.children(guarding)
        await system.until_status(guarded, "sleeping")

        await handle.cancel("never mind")

        assert (await end_of(handle)).state == Cancelled("never mind")
        by = {working: handle.id, sleeping: handle.id, waiting: handle.id, guarding: handle.id, guarded: guarding}
        for run_id, parent in by.items():
            await system.until_status(run_id, "cancelled")
            assert (await system.run(run_id)).explanation == f"run {parent}, which had started it, was cancelled"
        until(lambda: stage.has(working, "A", "first", "cancelled"), "the task being cut off")
        stage.open_gate("A", "first")
        await another_run_ends(system)
        assert stage.effects(working) == [("A", "first", "began"), ("A", "first", "cancelled")]
