"""The workflows that the simulation runs, and how each of them may end."""

import asyncio
from dataclasses import dataclass
from typing import Any

from aiki_push import Run, WorkflowVersion, fixed, task, task_info, workflow
from aiki_push.domain.values import Json
from aiki_push.errors import OutcomeUnknown, TaskFailed
from tests.simulation.segments import current_segment

FAILED = "the run fails"


async def work(what: str) -> str:
    """One execution of a handler: it takes its time, and its result is like no other's."""
    segment, info = current_segment(), task_info()
    assert segment is not None
    await asyncio.sleep(segment.executions.begin(info))
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


@workflow("sequence").v("1")
async def sequence(run: Run) -> list[str]:
    return [await step.start(run, what) for what in "abcde"]


@workflow("chains").v("1")
async def chains(run: Run) -> list[list[str]]:
    async def chain(name: str) -> list[str]:
        return [await step.start(run, f"{name}{number}") for number in range(2)]

    return list(await asyncio.gather(chain("a"), chain("b"), chain("c")))


@workflow("group").v("1")
async def group(run: Run) -> list[str]:
    async with asyncio.TaskGroup() as tasks:
        first, second = tasks.create_task(step.start(run, "a")), tasks.create_task(flaky.start(run, "b"))
    return [first.result(), second.result(), await step.start(run, "c")]


@workflow("broken_group").v("1")
async def broken_group(run: Run) -> list[str]:
    try:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(step.start(run, "cancelled"))
            tasks.create_task(hopeless.start(run, "x"))
    except* TaskFailed:
        pass
    return [await step.start(run, "after")]


@workflow("in_time").v("1")
async def in_time(run: Run) -> list[str]:
    try:
        async with asyncio.timeout(1.5):
            first = await step.start(run, "in time")
    except TimeoutError:
        first = "too late"
    return [first, await step.start(run, "after")]


@workflow("race").v("1")
async def race(run: Run) -> list[str]:
    tasks = [asyncio.create_task(step.start(run, "same")) for _ in range(3)]
    done, others = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    for other in others:
        other.cancel()
    first = next(one.result() for one in tasks if one in done)
    return [first, await step.start(run, "same")]


@workflow("sleeper").v("1")
async def sleeper(run: Run) -> list[str]:
    first = await step.start(run, "a")
    await asyncio.sleep(40)
    second, _ = await asyncio.gather(step.start(run, "b"), asyncio.sleep(400))
    return [first, second]


@workflow("retries").v("1")
async def retries(run: Run) -> list[str]:
    return list(await asyncio.gather(flaky.start(run, "a"), flaky.start(run, "b"), step.start(run, "c")))


@workflow("failing").v("1")
async def failing(run: Run) -> None:
    await step.start(run, "a")
    await hopeless.start(run, "x")


@workflow("again").v("1", retry=fixed(max_attempts=3, delay_ms=3_000))
async def again(run: Run) -> list[str]:
    first = await step.start(run, "a")
    await asyncio.sleep(1)
    if run.attempt == 1:
        await hopeless.start(run, "x")
    second = await flaky.start(run, "b")
    if run.attempt < 3:
        raise ConnectionError("reset")
    return [first, second, await step.start(run, "c")]


@workflow("once").v("1")
async def once(run: Run) -> list[str]:
    try:
        first = await careful.start(run, "paid")
    except OutcomeUnknown:
        first = "unknown"
    return [first, await step.start(run, "after")]


@dataclass(frozen=True, slots=True)
class Scenario:
    """A workflow, and the outputs that are right, without what makes results different from each other."""

    version: WorkflowVersion[[], Any]
    endings: tuple[Json, ...]


SCENARIOS = {
    scenario.version.name: scenario
    for scenario in (
        Scenario(sequence, (["a", "b", "c", "d", "e"],)),
        Scenario(chains, ([["a0", "a1"], ["b0", "b1"], ["c0", "c1"]],)),
        Scenario(group, (["a", "b", "c"],)),
        Scenario(broken_group, (["after"],)),
        Scenario(in_time, (["in time", "after"], ["too late", "after"])),
        Scenario(race, (["same", "same"],)),
        Scenario(sleeper, (["a", "b"],)),
        Scenario(retries, (["a", "b", "c"],)),
        Scenario(failing, (FAILED,)),
        Scenario(again, (["a", "b", "c"],)),
        Scenario(once, (["paid", "after"], ["unknown", "after"])),
    )
}


def plain(output: Json) -> Json:
    """`output` without what makes results different."""
    if isinstance(output, list):
        return [plain(item) for item in output]
    return output.partition("#")[0] if isinstance(output, str) else output


def results_in(output: Json) -> set[str]:
    """The results of tasks in `output`."""
    if isinstance(output, list):
        return {result for item in output for result in results_in(item)}
    return {output} if isinstance(output, str) and "#" in output else set()
