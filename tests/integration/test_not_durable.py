"""Workflow code that a replay could not repeat fails its run, by name, whatever it does about the error."""

import asyncio
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest

from aiki_push import Run, task
from aiki_push.domain.run_states import Failed, SelfCause
from tests.integration.executions import FAILED, execute, version_of
from tests.local_system import LocalSystem


@task("step")
async def step() -> str:
    return "done"


async def uses_a_thread(_: Run) -> None:
    await asyncio.to_thread(print, "outside")


async def uses_a_socket(_: Run) -> None:
    await asyncio.open_connection("127.0.0.1", 1)


async def starts_a_process(_: Run) -> None:
    await asyncio.create_subprocess_exec("true")


async def is_woken_by_a_thread(_: Run) -> None:
    future = asyncio.get_running_loop().create_future()
    loop = asyncio.get_running_loop()

    def wake() -> None:
        try:
            loop.call_soon_threadsafe(future.set_result, None)
        except Exception:
            return

    thread = threading.Thread(target=wake)
    thread.start()
    thread.join()
    await future


async def numbers() -> AsyncIterator[int]:
    for number in range(3):
        yield number


async def leaves_a_generator(run: Run) -> None:
    async for _ in numbers():
        break
    await step.start(run)


async def catches_the_error(run: Run) -> str:
    try:
        await uses_a_thread(run)
    except Exception:
        await step.start(run)
    return "as if nothing had happened"


async def wraps_the_error(run: Run) -> None:
    async with asyncio.TaskGroup() as group:
        group.create_task(uses_a_thread(run))
        group.create_task(step.start(run))


async def spins(_: Run) -> None:
    while True:
        await asyncio.sleep(0)


@pytest.mark.parametrize(
    ("body", "told"),
    [
        (uses_a_thread, "asyncio.to_thread()"),
        (uses_a_socket, "asyncio.open_connection()"),
        (starts_a_process, "subprocess"),
        (is_woken_by_a_thread, "call_soon_threadsafe"),
        (leaves_a_generator, "async generator numbers"),
        (catches_the_error, "asyncio.to_thread()"),
        (wraps_the_error, "asyncio.to_thread()"),
        (spins, "keeps the loop busy"),
    ],
    ids=lambda value: value if isinstance(value, str) else value.__name__,
)
@pytest.mark.parametrize("debug", [False, True], ids=["", "asyncio debug mode"])
async def test_touching_the_outside_world_fails_the_run_by_name(
    body: Callable[[Run], Awaitable[Any]], told: str, debug: bool
) -> None:
    asyncio.get_running_loop().set_debug(debug)
    system = LocalSystem()
    result, run_id = await execute(system, body)
    run = (await version_of(body).get(system.client(), run_id)).run
    assert (result, run.state) == (FAILED, Failed(cause=SelfCause()))
    assert run.error is not None
    assert run.error.name == "NotDurable"
    assert told in run.error.message


async def test_waiting_for_nothing_that_can_happen_fails_the_run_and_says_where_it_stands() -> None:
    async def body(run: Run) -> None:
        await asyncio.gather(step.start(run), asyncio.Event().wait())

    system = LocalSystem()
    result, run_id = await execute(system, body)
    run = (await version_of(body).get(system.client(), run_id)).run
    assert (result, run.error and run.error.name) == (FAILED, "NothingToWaitFor")
    assert run.error is not None
    assert "test_not_durable.py" in run.error.message
