"""Workflows that wait: for time, for events, for children. Their tasks are those of `workflows`."""

import asyncio
from datetime import timedelta

from aiki_push import Received, Run, TimedOut, event, task, workflow
from tests.e2e import workflows
from tests.e2e.workflows import first, second, third

LONG = timedelta(hours=1)

told = event("told", str)


@workflow("one-step").v("1.0.0")
async def one_step(run: Run, number: int) -> str:
    return f"{number}: {await first.start(run)}"


@workflow("family").v("1.0.0")
async def family(run: Run, pools: list[str]) -> list[str]:
    children = [await one_step.with_("pool", pool).start_as_child(run, number) for number, pool in enumerate(pools)]
    return [ended.value() for ended in await asyncio.gather(*(child.wait() for child in children))]


@workflow("expects").v("1.0.0")
async def expects(run: Run, timeout_ms: int | None) -> str:
    await second.start(run)
    heard = await told.wait(run, timeout=None if timeout_ms is None else timedelta(milliseconds=timeout_ms))
    return "nobody" if isinstance(heard, TimedOut) else heard.data


@workflow("listens").v("1.0.0")
async def listens(run: Run) -> list[str]:
    """Hears of something while a task is being executed, and does something about it at once."""

    async def hear() -> str:
        heard: Received[str] = await told.wait(run)
        return f"{heard.data}, {await third.start(run)}"

    return list(await asyncio.gather(second.start(run), hear()))


@workflow("rests").v("1.0.0")
async def rests(run: Run, nap_ms: int) -> list[bool]:
    """Whether each of its sleeps was ended from outside."""
    await second.start(run)
    nap = await run.sleep("nap", timedelta(milliseconds=nap_ms))
    await third.start(run)
    rest = await run.sleep("rest", LONG)
    return [nap.woken_early, rest.woken_early]


@workflow("guardian").v("1.0.0")
async def guardian(run: Run) -> None:
    child = await rests.start_as_child(run, LONG // timedelta(milliseconds=1))
    await child.wait()


@workflow("ancestor").v("1.0.0")
async def ancestor(run: Run) -> None:
    """Has a child that works, one that sleeps, one that waits for an event, and one with a sleeping child of its own."""
    children = (
        await one_step.start_as_child(run, 1),
        await rests.start_as_child(run, LONG // timedelta(milliseconds=1)),
        await expects.start_as_child(run, None),
        await guardian.start_as_child(run),
    )
    await asyncio.gather(*(child.wait() for child in children))


@task("stint", expected_duration=timedelta(milliseconds=1_500))
async def stint(number: int) -> int:
    workflows.note("began")
    await asyncio.sleep(1)
    workflows.note("ended")
    return number


@workflow("long-haul").v("1.0.0")
async def long_haul(run: Run, stints: int) -> list[int]:
    return [await stint.start(run, number) for number in range(stints)]


ALL = (*workflows.ALL, one_step, family, expects, listens, rests, guardian, ancestor, long_haul)
"""Every workflow that the endpoints of these tests execute."""
