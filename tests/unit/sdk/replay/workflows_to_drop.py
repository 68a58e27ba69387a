"""Workflows that wait inside what Python runs when they are dropped there, and the lines that this gives."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from typing import Any

from aiki_push.domain.errors import Dropped

Lines = list[str]
Scenario = Callable[[Lines], Awaitable[object]]


def scenario(*expected: str) -> Callable[[Scenario], Scenario]:
    """Register a workflow that waits somewhere, with the lines that dropping it there gives."""

    def register(workflow: Scenario) -> Scenario:
        SCENARIOS[workflow.__name__] = workflow, list(expected)
        return workflow

    return register


SCENARIOS: dict[str, tuple[Scenario, Lines]] = {}


def durable() -> asyncio.Future[Any]:
    return asyncio.get_running_loop().create_future()


async def clean_up(lines: Lines, name: str) -> None:
    lines.append(f"clean up {name}")
    await durable()
    lines.append("never")


@scenario()
async def except_exception(lines: Lines) -> None:
    try:
        await durable()
    except Exception:  # noqa: BLE001 - the code under test
        lines.append("never")


@scenario("Dropped", "closed in branch 0")
async def except_base_exception(lines: Lines) -> None:
    try:
        await durable()
    except BaseException as error:  # noqa: BLE001 - the code under test
        lines.append(type(error).__name__)
    task = asyncio.current_task()
    lines.append(f"closed in {task.get_name() if task else 'no task'}")
    await durable()
    lines.append("never")


@scenario("Dropped")
async def except_dropped(lines: Lines) -> None:
    try:
        await durable()
    except Dropped as error:
        lines.append(type(error).__name__)
        raise ValueError from error


@scenario("outer")
async def finally_awaits(lines: Lines) -> None:
    try:
        try:
            await durable()
        finally:
            await asyncio.sleep(1)
            lines.append("never")
    finally:
        lines.append("outer")


@scenario("clean up waits", "clean up gathered", "clean up in group")
async def finally_uses_asyncio(lines: Lines) -> None:
    with contextlib.ExitStack() as ended:
        ended.callback(lambda: None)
        try:
            try:
                try:
                    await durable()
                finally:
                    lines.append("clean up waits")
                    await asyncio.wait_for(asyncio.shield(clean_up([], "shielded")), 5)
            finally:
                lines.append("clean up gathered")
                await asyncio.gather(clean_up([], "1"), clean_up([], "2"))
        finally:
            lines.append("clean up in group")
            async with asyncio.timeout(3), asyncio.TaskGroup() as group:
                group.create_task(clean_up([], "3"))
                await group.create_task(clean_up([], "4"))


@scenario("after")
async def suppress_everything(lines: Lines) -> None:
    with contextlib.suppress(BaseException):
        await durable()
    lines.append("after")
    await asyncio.sleep(0)
    lines.append("never")


@scenario("exit of Dropped", "exit of manager")
async def async_context_managers(lines: Lines) -> None:
    class Manager:
        async def __aenter__(self) -> None:
            await asyncio.sleep(0)

        async def __aexit__(self, kind: type[BaseException], *_: object) -> None:
            lines.append(f"exit of {kind.__name__}")
            await durable()
            lines.append("never")

    @contextlib.asynccontextmanager
    async def manager() -> AsyncIterator[None]:
        try:
            yield
        finally:
            lines.append("exit of manager")
            await asyncio.sleep(0)
            lines.append("never")

    async with manager(), Manager():
        await durable()


async def rows(lines: Lines, name: str, waits: bool) -> AsyncGenerator[int]:
    try:
        yield 1
        if waits:
            await durable()
        yield 2
    finally:
        lines.append(f"end of {name}")
        await durable()
        lines.append("never")


@scenario("end of inner", "end of outer", "end of held")
async def async_generators(lines: Lines) -> None:
    held = rows(lines, "held", waits=False)
    await anext(held)
    async for _ in rows(lines, "outer", waits=False):
        async for _ in rows(lines, "inner", waits=True):
            pass


@scenario("stubborn generator")
async def a_generator_that_refuses_to_end(lines: Lines) -> None:
    async def stubborn() -> AsyncGenerator[int]:
        future = durable()
        try:
            yield 1
        finally:
            lines.append("stubborn generator")
            while True:
                with contextlib.suppress(BaseException):
                    await future

    async for _ in stubborn():
        await durable()
