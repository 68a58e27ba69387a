"""Workflows that take their time."""

import asyncio
import math

from aiki_push import Run, event, task, workflow

sleepers = workflow("sleeper")

bell = event("bell", str)


@task("greet")
async def greet(name: str) -> str:
    return f"hello {name}"


@task("doze")
async def doze(seconds: float) -> str:
    await asyncio.sleep(seconds)
    return f"dozed {seconds} s"


@task("hang")
async def hang() -> None:
    await asyncio.sleep(math.inf)


@sleepers.v("month")
async def month(run: Run, name: str) -> str:
    await asyncio.sleep(30 * 86_400)
    return await greet.start(run, name)


@sleepers.v("dozing")
async def dozing(run: Run) -> str:
    try:
        async with asyncio.timeout(5):
            return await doze.start(run, 600.0)
    except TimeoutError:
        return "too slow"


@sleepers.v("hanging")
async def hanging(run: Run) -> None:
    await hang.start(run)


@sleepers.v("listening")
async def listening(run: Run) -> str:
    return (await bell.wait(run)).data


@sleepers.v("parent")
async def parent(run: Run) -> str:
    child = await month.start_as_child(run, "child")
    return (await child.wait()).value()
