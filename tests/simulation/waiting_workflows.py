"""Workflows that sleep and wait for events: one after the other, side by side, in races, for a limited time, in a second attempt."""

import asyncio
from collections.abc import Coroutine
from datetime import timedelta
from typing import Any

from aiki_push import Event, Run, TimedOut, event, fixed, workflow
from tests.simulation.endings import Scenario
from tests.simulation.segments import check, saw, wakes_since
from tests.simulation.work import do

bell = event("bell", str)
gong = event("gong", str)

NOTHING = "nothing"


async def hear(run: Run, what: Event[str], seconds: float | None = None) -> str:
    """The next event's data, NOTHING where none comes in time."""
    began, timeout = run.now(), None if seconds is None else timedelta(seconds=seconds)
    heard = await what.wait(run, timeout=timeout)
    if isinstance(heard, TimedOut):
        check(run.now() - began >= (timeout or timedelta.max), f"no {what.name} came, and {timeout} had not passed since {began}")
        return saw(run, NOTHING)
    return saw(run, heard.data)


async def doze(run: Run, name: str, seconds: float) -> str:
    """Whether the sleep was ended early."""
    began = run.now()
    if not (await run.sleep(name, timedelta(seconds=seconds))).woken_early:
        return saw(run, "slept")
    is_kept = run.attempt > 1  # what ended a sleep in one attempt of the workflow ends it in the next
    check(is_kept or wakes_since(run, name, began), f"it was woken from {name} by what came before {began}")
    return saw(run, "woken")


async def first_of(*contenders: Coroutine[Any, Any, str]) -> str:
    """The result of the first that has one; the others are given up."""
    tasks = [asyncio.create_task(one) for one in contenders]
    done, others = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    for other in others:
        other.cancel()
    return next(one.result() for one in tasks if one in done)


@workflow("listener").v("1")
async def listener(run: Run) -> list[str]:
    return [await hear(run, bell), await do(run, "between"), await hear(run, bell)]


@workflow("patient").v("1")
async def patient(run: Run) -> list[str]:
    heard = [await hear(run, bell, seconds) for seconds in (0.5, 30, 200)]
    return [*heard, await do(run, "after"), await hear(run, bell, 1)]


@workflow("crowd").v("1")
async def crowd(run: Run) -> list[str]:
    waits = (hear(run, bell), hear(run, gong), hear(run, bell, 50), hear(run, bell), do(run, "beside"))
    return list(await asyncio.gather(*waits))


@workflow("contest").v("1")
async def contest(run: Run) -> list[str]:
    first = await first_of(hear(run, bell), doze(run, "nap", 15), do(run, "work"))
    second = await first_of(hear(run, bell, 5), hear(run, gong, 5))
    return [first, second, await hear(run, bell, 60), await doze(run, "nap", 3)]


@workflow("hasty").v("1")
async def hasty(run: Run) -> list[str]:
    heard = []
    for _ in range(2):
        try:
            async with asyncio.timeout(10):
                heard.append(await hear(run, bell))
        except TimeoutError:
            heard.append(saw(run, NOTHING))
    return [*heard, await do(run, "after"), await hear(run, bell)]


@workflow("dozer").v("1")
async def dozer(run: Run) -> list[str]:
    first = await asyncio.gather(doze(run, "nap", 20), doze(run, "night", 500), do(run, "beside"))
    return [*first, await doze(run, "nap", 5), await doze(run, "night", 300)]


@workflow("restless").v("1", retry=fixed(max_attempts=3, delay_ms=2_000))
async def restless(run: Run) -> list[str]:
    first, second = await hear(run, bell), await do(run, "a")
    third, fourth = await asyncio.gather(hear(run, gong, 10), doze(run, "nap", 4))
    if run.attempt < 3:
        raise ConnectionError("reset")
    return [first, second, third, fourth, await hear(run, bell, 20)]


@workflow("multitude").v("1")
async def multitude(run: Run) -> list[str]:
    """More waits than a header holds one by one."""
    naps = (
        doze(run, f"a nap with a long name, number {number}".replace(" ", "-").replace(",", ""), 30 + number)
        for number in range(7)
    )
    return list(await asyncio.gather(hear(run, bell), hear(run, gong, 90), *naps))


BELL, GONG = ("bell", NOTHING), ("gong", NOTHING)
DOZED = ("slept", "woken")

SCENARIOS = (
    Scenario(listener, ["bell", "between", "bell"]),
    Scenario(patient, [BELL, BELL, BELL, "after", BELL]),
    Scenario(crowd, ["bell", "gong", BELL, "bell", "beside"]),
    Scenario(contest, [("bell", *DOZED, "work"), (*BELL, *GONG), BELL, DOZED]),
    Scenario(hasty, [BELL, BELL, "after", "bell"]),
    Scenario(dozer, [DOZED, DOZED, "beside", DOZED, DOZED]),
    Scenario(restless, ["bell", "a", GONG, DOZED, BELL]),
    Scenario(multitude, ["bell", GONG, *[DOZED] * 7]),
)
