"""Workflows with several branches that are dropped while they wait, and the lines that this gives."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable

from tests.unit.sdk.replay.workflows_to_drop import SCENARIOS, Lines, clean_up, durable, scenario

__all__ = ["SCENARIOS"]


@scenario("shielded", "waits for shielded")
async def shield(lines: Lines) -> None:
    async def inner() -> None:
        try:
            await durable()
        finally:
            lines.append("shielded")

    try:
        await asyncio.shield(asyncio.create_task(inner()))
    finally:
        lines.append("waits for shielded")


@scenario("0.1.1", "0.2", "0.1", "group")
async def task_group(lines: Lines) -> None:
    async def branch(name: str, *children: str) -> None:
        try:
            async with asyncio.TaskGroup() as group:
                for child in children:
                    group.create_task(branch(child))
                await durable()
        finally:
            lines.append(name)

    try:
        async with asyncio.timeout(9), asyncio.TaskGroup() as group:
            group.create_task(branch("0.1", "0.1.1"))
            group.create_task(branch("0.2"))
    finally:
        lines.append("group")


@scenario("timeout", "wait_for")
async def timeouts(lines: Lines) -> None:
    async def wait_for() -> None:
        try:
            await asyncio.wait_for(clean_up([], ""), 3)
        finally:
            lines.append("timeout")

    try:
        await asyncio.wait_for(wait_for(), 5)
    finally:
        lines.append("wait_for")


@scenario("gather", "wait", "as_completed")
async def groups(lines: Lines) -> None:
    def tasks() -> list[asyncio.Task[None]]:
        return [asyncio.create_task(clean_up([], "")) for _ in range(2)]

    async def complete() -> None:
        try:
            for completed in asyncio.as_completed(tasks(), timeout=3):
                await completed
        finally:
            lines.append("as_completed")

    async def wait() -> None:
        try:
            await asyncio.wait(tasks(), timeout=3)
        finally:
            lines.append("wait")

    async def gather() -> None:
        try:
            await asyncio.gather(*tasks(), return_exceptions=True)
        finally:
            lines.append("gather")

    await asyncio.gather(complete(), wait(), gather())


@scenario("child", "parent's clean-up", "parent")
async def a_parent_that_awaits_its_child_in_finally(lines: Lines) -> None:
    async def child() -> None:
        try:
            await durable()
        finally:
            lines.append("child")

    task = asyncio.create_task(child())
    try:
        await durable()
    finally:
        lines.append("parent's clean-up")
        try:
            await task
            lines.append("never")
        finally:
            lines.append("parent")


@scenario("stubborn", "not stubborn")
async def branches_that_refuse_to_end(lines: Lines) -> None:
    future = durable()

    async def for_ever(wait: Callable[[], Awaitable[object]]) -> None:
        while True:
            with contextlib.suppress(BaseException):
                await wait()

    async def step_on() -> None:
        with contextlib.suppress(BaseException):
            await future
        lines.append("stubborn")
        await for_ever(lambda: asyncio.sleep(0))

    tasks = [asyncio.create_task(for_ever(lambda: future)), asyncio.create_task(step_on())]
    tasks.append(asyncio.create_task(for_ever(lambda: tasks[0])))
    tasks.append(asyncio.create_task(for_ever(lambda: asyncio.wait_for(asyncio.create_task(clean_up([], "")), 3))))
    try:
        await asyncio.gather(*tasks)
    finally:
        lines.append("not stubborn")


@scenario("outside world", "still outside")
async def finally_reaches_outside(lines: Lines) -> None:
    try:
        await durable()
    finally:
        lines.append("outside world")
        try:
            await asyncio.to_thread(print)
        finally:
            lines.append("still outside")
            asyncio.get_running_loop().add_reader(0, print)
            await asyncio.open_connection("127.0.0.1", 1)
            lines.append("never")


@scenario("created", "given", "fails")
async def finally_does_things_without_awaiting(lines: Lines) -> None:
    async def begins(_: object) -> None:
        lines.append("never")

    given, children = durable(), []

    async def sibling() -> None:
        await given
        lines.append("never")

    children.append(asyncio.create_task(sibling()))
    try:
        await durable()
    finally:
        children.append(asyncio.create_task(begins(clean_up)))
        children.append(asyncio.ensure_future(begins(clean_up)))
        asyncio.get_running_loop().call_soon(lines.append, "never")
        asyncio.get_running_loop().call_later(0, lines.append, "never")
        asyncio.get_running_loop().call_later(1, lines.append, "never").cancel()
        lines.append("created")
        given.set_result(None)
        children[0].cancel()
        lines.append("given")
        durable().set_exception(ValueError("nobody looks"))
        lines.append("fails")
        raise ValueError


@scenario("Dropped", "Dropped")
async def finally_cancels_its_own_branch(lines: Lines) -> None:
    try:
        await durable()
    finally:
        for wait in (durable, lambda: asyncio.sleep(0)):
            task = asyncio.current_task()
            assert task is not None
            task.cancel()
            try:
                await wait()
            except BaseException as error:  # noqa: BLE001 - the code under test
                lines.append(type(error).__name__)


@scenario("queue", "lock", "condition")
async def synchronisation(lines: Lines) -> None:
    lock, condition = asyncio.Lock(), asyncio.Condition()
    await lock.acquire()

    async def hold() -> None:
        try:
            async with condition:
                await condition.wait()
        finally:
            lines.append("condition")

    async def acquire() -> None:
        try:
            async with lock:
                lines.append("never")
        finally:
            lines.append("lock")

    async def get() -> None:
        try:
            await asyncio.Queue[int]().get()
        finally:
            lines.append("queue")

    await asyncio.gather(hold(), acquire(), get())


@scenario()
async def failed_before(_: Lines) -> None:
    async def fail() -> None:
        raise ValueError("nobody looked yet")

    tasks = [asyncio.create_task(fail())]
    await asyncio.sleep(0)
    await durable()
    await tasks[0]
