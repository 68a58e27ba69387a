"""Workflows of tasks and timers."""

import asyncio

from aiki_push import Run, fixed, workflow
from aiki_push.errors import OutcomeUnknown, TaskFailed
from tests.simulation.endings import FAILED, Scenario
from tests.simulation.segments import saw
from tests.simulation.work import blink, careful, do, hopeless, insist

BUSY = 100
"""Tasks."""


@workflow("sequence").v("1")
async def sequence(run: Run) -> list[str]:
    return [await do(run, what) for what in "abcde"]


@workflow("busy").v("1")
async def busy(run: Run) -> list[str]:
    """So much that whoever wants to stop it may be too slow."""
    blinks = [saw(run, await blink.start(run, "a")) for _ in range(BUSY)]
    return [blinks[0], blinks[-1]]


@workflow("chains").v("1")
async def chains(run: Run) -> list[list[str]]:
    async def chain(name: str) -> list[str]:
        return [await do(run, f"{name}{number}") for number in range(2)]

    return list(await asyncio.gather(chain("a"), chain("b"), chain("c")))


@workflow("group").v("1")
async def group(run: Run) -> list[str]:
    async with asyncio.TaskGroup() as tasks:
        first, second = tasks.create_task(do(run, "a")), tasks.create_task(insist(run, "b"))
    return [first.result(), second.result(), await do(run, "c")]


@workflow("broken_group").v("1")
async def broken_group(run: Run) -> list[str]:
    try:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(do(run, "cancelled"))
            tasks.create_task(hopeless.start(run, "x"))
    except* TaskFailed:
        saw(run, "the group broke")
    return [await do(run, "after")]


@workflow("in_time").v("1")
async def in_time(run: Run) -> list[str]:
    try:
        async with asyncio.timeout(1.5):
            first = await do(run, "in time")
    except TimeoutError:
        first = saw(run, "too late")
    return [first, await do(run, "after")]


@workflow("race").v("1")
async def race(run: Run) -> list[str]:
    tasks = [asyncio.create_task(do(run, "same")) for _ in range(3)]
    done, others = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    for other in others:
        other.cancel()
    first = next(one.result() for one in tasks if one in done)
    return [first, await do(run, "same")]


@workflow("sleeper").v("1")
async def sleeper(run: Run) -> list[str]:
    first = await do(run, "a")
    await asyncio.sleep(40)
    second, _ = await asyncio.gather(do(run, "b"), asyncio.sleep(400))
    return [first, saw(run, second)]


@workflow("retries").v("1")
async def retries(run: Run) -> list[str]:
    return list(await asyncio.gather(insist(run, "a"), insist(run, "b"), do(run, "c")))


@workflow("failing").v("1")
async def failing(run: Run) -> None:
    await do(run, "a")
    await hopeless.start(run, "x")


@workflow("again").v("1", retry=fixed(max_attempts=3, delay_ms=3_000))
async def again(run: Run) -> list[str]:
    first = await do(run, "a")
    await asyncio.sleep(1)
    if run.attempt == 1:
        await hopeless.start(run, "x")
    second = await insist(run, "b")
    if run.attempt < 3:
        raise ConnectionError("reset")
    return [first, second, await do(run, "c")]


@workflow("once").v("1")
async def once(run: Run) -> list[str]:
    try:
        first = saw(run, await careful.start(run, "paid"))
    except OutcomeUnknown:
        first = saw(run, "unknown")
    return [first, await do(run, "after")]


SCENARIOS = (
    Scenario(sequence, ["a", "b", "c", "d", "e"]),
    Scenario(busy, ["a", "a"]),
    Scenario(chains, [["a0", "a1"], ["b0", "b1"], ["c0", "c1"]]),
    Scenario(group, ["a", "b", "c"]),
    Scenario(broken_group, ["after"]),
    Scenario(in_time, [("in time", "too late"), "after"]),
    Scenario(race, ["same", "same"]),
    Scenario(sleeper, ["a", "b"]),
    Scenario(retries, ["a", "b", "c"]),
    Scenario(failing, FAILED),
    Scenario(again, ["a", "b", "c"]),
    Scenario(once, [("paid", "unknown"), "after"]),
)
