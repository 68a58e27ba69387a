"""Processes in virtual time."""

import asyncio
from random import Random

import pytest

from tests.simulation.process import Process, start_process
from tests.simulation.schedule import Schedule, Violation


@pytest.fixture
def schedule() -> Schedule:
    return Schedule(Random(0))


@pytest.fixture
def process(schedule: Schedule) -> Process:
    return start_process("p", schedule)


def run(schedule: Schedule, process: Process) -> None:
    while process.due_us is not None:
        schedule.step()


def test_sleeping_and_timeouts_take_virtual_time(schedule: Schedule, process: Process) -> None:
    seen: list[tuple[str, int]] = []

    async def sleeps() -> None:
        await asyncio.sleep(3_600)
        seen.append(("slept", int(process.time())))
        try:
            async with asyncio.timeout(60):
                await asyncio.Event().wait()
        except TimeoutError:
            seen.append(("timed out", int(process.time())))

    process.spawn(sleeps())
    run(schedule, process)
    assert seen == [("slept", 3_600), ("timed out", 3_660)]


def test_a_killed_process_does_nothing_any_more_until_it_is_buried(schedule: Schedule, process: Process) -> None:
    seen: list[str] = []

    async def cleans_up() -> None:
        try:
            seen.append("began")
            await asyncio.sleep(1)
            seen.append("went on")
        finally:
            seen.append("cleaned up")

    process.spawn(cleans_up())
    schedule.step()
    process.kill()
    assert process.due_us is None
    assert seen == ["began"]
    process.bury()
    assert seen == ["began", "cleaned up"]


def test_a_frozen_process_sees_what_was_due_when_it_thaws(schedule: Schedule, process: Process) -> None:
    seen: list[int] = []

    async def sleeps() -> None:
        await asyncio.sleep(1)
        seen.append(int(process.time()))

    process.spawn(sleeps())
    schedule.step()
    process.freeze(90_000_000)
    assert process.is_frozen
    run(schedule, process)
    assert seen == [90]


def test_what_a_task_raises_is_a_violation(schedule: Schedule, process: Process) -> None:
    async def raises() -> None:
        raise KeyError("k")

    process.spawn(raises())
    with pytest.raises(Violation, match=r"p: .*raises.* raised KeyError\('k'\)"):
        run(schedule, process)
