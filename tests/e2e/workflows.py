"""Workflows whose tasks are held by gates and leave their traces in a file, as the executor's environment says where."""

import asyncio
import os
from pathlib import Path

from aiki_push import Run, task, task_info, workflow
from aiki_push.adapters.system import SystemClock
from tests.e2e.stage import Effect, Stage


def note(what: str) -> None:
    """Leave a trace of what the running task did."""
    info = task_info()
    _stage().note(Effect(_executor(), info.run_id, info.task, what))


async def _perform() -> str:
    note("began")
    try:
        await _stage().pass_gate(_executor(), task_info().task)
    except asyncio.CancelledError:
        note("cancelled")
        raise
    note("ended")
    return f"{task_info().task} by {_executor()}"


def _stage() -> Stage:
    return Stage(Path(os.environ["E2E_FOLDER"]))


def _executor() -> str:
    return os.environ["E2E_EXECUTOR"]


@task("first")
async def first() -> str:
    return await _perform()


@task("second")
async def second() -> str:
    return await _perform()


@task("third")
async def third() -> str:
    return await _perform()


@workflow("three-steps").v("1.0.0")
async def three_steps(run: Run) -> list[str]:
    return [await first.start(run), await second.start(run), await third.start(run)]


def _spin(duration_ms: int) -> None:
    """Keep the interpreter busy and nothing else: no call in here waits or gives way."""
    note("began")
    clock = SystemClock()
    ends_at_ms = clock.monotonic_ms() + duration_ms
    while clock.monotonic_ms() < ends_at_ms:
        pass
    note("ended")


@task("spin-on-the-loop")
async def spin_on_the_loop(duration_ms: int) -> None:
    _spin(duration_ms)


@task("spin-in-a-thread")
def spin_in_a_thread(duration_ms: int) -> None:
    _spin(duration_ms)


@workflow("spins").v("1.0.0")
async def spins(run: Run, duration_ms: int) -> str:
    await spin_on_the_loop.start(run, duration_ms)
    await spin_in_a_thread.start(run, duration_ms)
    return "spun"


@task("stumbles")
async def stumbles() -> None:
    note("began")
    raise ValueError("no such parcel")


@workflow("fails").v("1.0.0")
async def fails(run: Run) -> None:
    await stumbles.start(run)


ALL = (three_steps, spins, fails)
