"""An executor is killed, or frozen and woken, in the middle of a task."""

import signal

import pytest

from tests.e2e.line import Line, line_to
from tests.e2e.processes import Processes, until
from tests.e2e.stage import Stage
from tests.e2e.system import attempts, end_of, system_in, transitions
from tests.e2e.waiting import family
from tests.e2e.workflows import three_steps

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]

TAKEN_OVER = [
    (0, "queued", None),
    (1, "running", "A"),
    (2, "queued", "A"),
    (3, "running", "B"),
    (4, "completed", "B"),
]
BY_A = [("A", "first", "began"), ("A", "first", "ended"), ("A", "second", "began")]
BY_B = [("B", "second", "began"), ("B", "second", "ended"), ("B", "third", "began"), ("B", "third", "ended")]


async def test_a_run_whose_executor_is_killed_in_the_middle_of_a_task_is_finished_by_another_from_that_task_on(
    processes: Processes, stage: Stage
) -> None:
    async with system_in(processes, store="moto") as system:
        stage.close_gate("A", "second")
        a, b = system.start_endpoint("A"), system.start_endpoint("B")
        await system.register(a)
        handle = await three_steps.start(system.client)
        until(lambda: stage.has(handle.id, "A", "second", "began"), "A in its second task")

        # A stays registered: that nobody is there must not keep the run from B.
        a.process.kill()
        await system.register(b)

        assert (await end_of(handle)).value() == ["first by A", "second by B", "third by B"]
        assert await transitions(handle) == TAKEN_OVER
        assert await attempts(handle) == [("first", 1), ("second", 1), ("second", 1), ("third", 1)]
    assert stage.effects(handle.id) == [*BY_A, *BY_B]


async def test_a_frozen_executor_that_wakes_up_after_its_run_was_finished_by_another_is_refused_and_does_nothing_more(
    processes: Processes, stage: Stage
) -> None:
    async with system_in(processes) as system:
        with line_to(system.server.url) as line_of_a:
            stage.close_gate("A", "second")
            a, b = system.start_endpoint("A", server_url=line_of_a.url), system.start_endpoint("B")
            await system.register(a)
            handle = await three_steps.start(system.client)
            until(lambda: stage.has(handle.id, "A", "second", "began"), "A in its second task")

            a.process.send(signal.SIGSTOP)
            await system.deregister(a)
            await system.register(b)
            assert (await end_of(handle)).value() == ["first by A", "second by B", "third by B"]

            a.process.send(signal.SIGCONT)
            until(lambda: stage.has(handle.id, "A", "second", "cancelled"), "A's task being cancelled")
            stage.open_gate("A", "second")

            # A takes part again as if nothing had been, and by the time it has finished another run it would have shown more.
            await system.deregister(b)
            await system.register(a)
            other = await three_steps.start(system.client)
            assert (await end_of(other)).value() == ["first by A", "second by A", "third by A"]
            assert {(one.path.rpartition("/")[2], one.status, one.code) for one in line_of_a.refusals("")} == {
                ("refresh", 409, "revision_conflict")
            }
        assert await transitions(handle) == TAKEN_OVER
    assert stage.effects(handle.id) == [*BY_A, *BY_B, ("A", "second", "cancelled")]


async def test_a_child_whose_start_was_not_answered_before_the_executor_was_killed_exists_once(
    processes: Processes, stage: Stage
) -> None:
    def starts_of_children(line: Line) -> int:
        return len([one for one in line.exchanges if b'"kind":"child"' in one.body])

    async with system_in(processes) as system:
        with line_to(system.server.url) as line_of_a:
            stage.close_gate("A", "first")  # whichever child it takes, it does not finish
            line_of_a.is_unheard = lambda _: starts_of_children(line_of_a) > 1
            a, b = system.start_endpoint("A", server_url=line_of_a.url), system.start_endpoint("B")
            await system.register(a, "line")
            handle = await family.with_("pool", "line").start(system.client, ["line"] * 3)
            until(lambda: starts_of_children(line_of_a) > 1, "a start of a child that is not answered")
            a.process.kill()
        await system.register(b, "line")

        assert (await end_of(handle)).value() == [f"{number}: first by B" for number in range(3)]
        children = await system.children(handle.id)
        assert len(children) == 3
        assert await system.runs_of("one-step") == {*children}
        for child in children:
            assert [one for one in stage.effects(child) if one[2] == "ended"] == [("B", "first", "ended")]
