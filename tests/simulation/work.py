"""What the simulation's workflows do: tasks whose every result is like no other's."""

import asyncio
from math import inf

from aiki_push import Run, fixed, task, task_info
from tests.simulation.segments import current_segment, saw


async def work(what: str, at_most_s: float = inf) -> str:
    """One execution of a handler: it takes its time, and its result is like no other's."""
    segment, info = current_segment(), task_info()
    assert segment is not None
    await asyncio.sleep(min(segment.executions.begin(info), at_most_s))
    return segment.executions.end(info, what)


@task("step")
async def step(what: str) -> str:
    return await work(what)


@task("flaky", retry=fixed(max_attempts=3, delay_ms=1_500))
async def flaky(what: str) -> str:
    result = await work(what)
    if task_info().attempt < 3:
        raise ConnectionError("reset")
    return result


@task("hopeless", retry=fixed(max_attempts=2, delay_ms=1))
async def hopeless(what: str) -> None:
    await work(what)
    raise ValueError("never works")


@task("careful", interrupted="fail")
async def careful(what: str) -> str:
    return await work(what)


@task("blink")
async def blink(what: str) -> str:
    return await work(what, at_most_s=0.1)


async def do(run: Run, what: str) -> str:
    """A step of the workflow, whose result it sees."""
    return saw(run, await step.start(run, what))


async def insist(run: Run, what: str) -> str:
    """As `do`, in the third attempt."""
    return saw(run, await flaky.start(run, what))
