import asyncio
import gc
import logging
import os
import subprocess
import sys
import warnings
import weakref
from collections.abc import Iterator
from pathlib import Path

import pytest

from aiki_push.domain.errors import Dropped
from aiki_push.sdk.replay.loop import WorkflowLoop
from tests.unit.sdk.replay.branches_to_drop import SCENARIOS
from tests.unit.sdk.replay.workflows_to_drop import Lines, Scenario, durable


def drop(workflow: Scenario) -> tuple[Lines, WorkflowLoop]:
    """Run until idle, drop, and touch what is left: the lines that this gives."""
    lines: Lines = []

    async def main() -> None:
        await workflow(lines)

    loop = WorkflowLoop()
    task = loop.start(main())
    loop.run_until_idle()
    assert (lines, task.done()) == ([], False)
    loop.drop()
    loop.drop()
    loop.run_until_idle()
    return lines, loop


def drop_every_scenario() -> None:
    """For a process of its own: prints the lines of each scenario."""
    logging.basicConfig(level=logging.DEBUG)
    logging.getLogger("asyncio").setLevel(logging.INFO)
    for name, (workflow, _) in SCENARIOS.items():
        lines, loop = drop(workflow)
        print(name, lines, loop.violation, loop.unhandled)
        del loop
        gc.collect()


@pytest.fixture
def noise(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[object]]:
    """What Python logged, warned of or could not raise, also when it frees things."""
    heard: list[object] = []
    gc.collect()
    monkeypatch.setattr(sys, "unraisablehook", heard.append)
    with caplog.at_level(logging.DEBUG), warnings.catch_warnings():
        warnings.simplefilter("error")
        yield heard
        gc.collect()
    assert (heard, caplog.records) == ([], [])


@pytest.mark.usefixtures("noise")
@pytest.mark.parametrize("name", SCENARIOS)
def test_a_dropped_workflow_runs_its_clean_up_and_is_not_heard_of(name: str) -> None:
    workflow, expected = SCENARIOS[name]
    lines, loop = drop(workflow)
    observed = (list(lines), loop.violation, loop.unhandled, list(loop.timers), loop.where_branches_stand())
    assert observed == (expected, None, [], [], "")
    assert asyncio.all_tasks(loop) == set()
    del loop
    gc.collect()
    assert lines == expected


@pytest.mark.parametrize("implementation", ["c", "python"])
def test_a_process_that_dropped_everything_ends_without_a_sound(implementation: str) -> None:
    program = "import sys, runpy\n"
    program += "sys.modules['_asyncio'] = None\n" if implementation == "python" else ""
    program += f"runpy.run_path({__file__!r})['drop_every_scenario']()"
    ended = subprocess.run(
        [sys.executable, "-X", "dev", "-W", "error", "-c", program],
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[4])},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    expected = [f"{name} {lines} None []" for name, (_, lines) in SCENARIOS.items()]
    assert (ended.returncode, ended.stderr, ended.stdout.splitlines()) == (0, "", expected)


@pytest.mark.usefixtures("noise")
def test_what_has_not_begun_yet_never_begins() -> None:
    async def workflow() -> None:
        raise AssertionError

    loop = WorkflowLoop()
    task = loop.start(workflow())
    loop.drop()
    loop.run_until_idle()
    assert (task.done(), loop.unhandled) == (True, [])


@pytest.mark.usefixtures("noise")
def test_what_was_ready_when_the_workflow_was_dropped_does_not_run() -> None:
    lines = []

    async def workflow() -> None:
        try:
            lines.append(await future)
        finally:
            lines.append("closed")

    loop = WorkflowLoop()
    future = loop.create_future()
    task = loop.start(workflow())
    loop.run_until_idle()
    future.set_result("given")
    loop.drop()
    assert (lines, task.done()) == (["closed"], True)


@pytest.mark.usefixtures("noise")
def test_an_outcome_that_comes_after_the_drop_changes_nothing() -> None:
    futures = []

    async def workflow() -> None:
        futures.extend([durable(), durable()])
        await asyncio.gather(*futures)

    loop = WorkflowLoop()
    loop.start(workflow())
    loop.run_until_idle()
    timer = loop.call_later(3, futures.clear)
    loop.drop()
    futures[0].set_result(1)
    futures[1].set_exception(ValueError())
    loop.set_time_ms(loop.now_at)
    timer.cancel()
    loop.run_until_idle()
    assert len(futures) == 2
    assert (loop.is_closed(), loop.violation, loop.unhandled) == (True, None, [])


@pytest.mark.usefixtures("noise")
def test_a_workflow_that_ended_is_dropped_with_its_background_branches() -> None:
    lines = []

    async def background() -> None:
        try:
            await durable()
        finally:
            lines.append("closed")

    async def workflow() -> int:
        asyncio.create_task(background())
        await asyncio.sleep(0)
        return 1

    loop = WorkflowLoop()
    task = loop.start(workflow())
    loop.run_until_idle()
    assert (task.result(), lines) == (1, [])
    loop.drop()
    assert lines == ["closed"]


@pytest.mark.usefixtures("noise")
def test_a_busy_workflow_can_be_dropped() -> None:
    async def workflow() -> None:
        while True:
            await asyncio.gather(asyncio.sleep(0), asyncio.sleep(0))

    loop = WorkflowLoop()
    task = loop.start(workflow())
    loop.run_until_idle()
    loop.drop()
    assert (task.done(), loop.where_branches_stand()) == (True, "")


@pytest.mark.usefixtures("noise")
def test_a_keyboard_interrupt_ends_the_drop() -> None:
    async def workflow() -> None:
        try:
            await durable()
        finally:
            raise KeyboardInterrupt

    loop = WorkflowLoop()
    loop.start(workflow())
    loop.run_until_idle()
    with pytest.raises(KeyboardInterrupt):
        loop.drop()
    loop.drop()


@pytest.mark.usefixtures("noise")
def test_a_dropped_workflow_is_freed() -> None:
    class Held:
        pass

    async def workflow(held: Held) -> None:
        async with asyncio.timeout(3), asyncio.TaskGroup() as group:
            group.create_task(asyncio.sleep(3, held))
            await asyncio.shield(durable())

    def freed() -> "weakref.ref[Held]":
        loop, held = WorkflowLoop(), Held()
        loop.start(workflow(held))
        loop.run_until_idle()
        loop.drop()
        return weakref.ref(held)

    held = freed()
    gc.collect()
    assert held() is None


def test_the_error_of_a_dropped_branch_is_no_exception() -> None:
    assert not issubclass(Dropped, Exception)


def test_tasks_that_ended_leave_nothing_for_the_garbage_collector() -> None:
    async def one(future: asyncio.Future[int]) -> int:
        return await future

    async def workflow() -> None:
        for _ in range(100):
            future = durable()
            task = asyncio.create_task(one(future))
            future.set_result(1)
            async with asyncio.timeout(3):
                await task

    loop = WorkflowLoop()
    gc.collect()
    gc.disable()
    main = loop.start(workflow())
    loop.run_until_idle()
    found = gc.collect()
    gc.enable()
    assert (main.done(), found) == (True, 0)
