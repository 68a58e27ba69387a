"""Calls of tasks: values and errors the same first time and on replay, threads, context variables, failures and their causes."""

import asyncio
import contextvars
import threading
from collections.abc import Awaitable
from typing import Any

import pytest
from pydantic import BaseModel

from aiki_push import Run, task
from aiki_push.domain.log_records import TaskFailed
from aiki_push.domain.run_states import Failed, SelfCause, TaskCause
from aiki_push.errors import TaskFailed as TaskFailedError
from aiki_push.testing import FakeClock
from tests.integration.crashes import execute_until_power_cut, recover
from tests.integration.executions import COMPLETED, FAILED, execute, output_of, version_of
from tests.local_system import LocalSystem


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def system(clock: FakeClock) -> LocalSystem:
    return LocalSystem(clock=clock)


class Point(BaseModel):
    x: int
    tags: list[str] = []


async def test_a_result_is_the_same_value_of_the_same_type_first_time_and_on_replay(
    system: LocalSystem, clock: FakeClock
) -> None:
    seen: list[Any] = []

    @task("point")
    async def point() -> Point:
        return Point(x=1, tags=["é", "😀"])

    @task("nothing")
    def nothing() -> None:
        return None

    async def body(run: Run) -> str:
        seen.append(await point.start(run))
        await nothing.start(run)
        await nothing.start(run)
        return "done"

    version = version_of(body)
    run_id = (await version.start(system.client())).id
    assert await execute_until_power_cut(system, version, run_id, after=3)
    recover(system, clock, run_id)
    assert await system.executor(version).execute(run_id, revision=None) == COMPLETED
    assert seen == [Point(x=1, tags=["é", "😀"])] * 2


async def test_an_error_is_what_the_record_holds_first_time_and_on_replay(system: LocalSystem, clock: FakeClock) -> None:
    seen: list[tuple[type, str, int, str, str]] = []

    @task("broken")
    async def broken() -> None:
        raise ValueError("no stock")

    @task("other")
    async def other() -> None:
        return None

    async def body(run: Run) -> str:
        try:
            await broken.start(run)
        except TaskFailedError as error:
            seen.append((type(error), error.task, error.attempts, error.error.name, error.error.message))
        await other.start(run)
        return "done"

    version = version_of(body)
    run_id = (await version.start(system.client())).id
    assert await execute_until_power_cut(system, version, run_id, after=2)
    recover(system, clock, run_id)
    assert await system.executor(version).execute(run_id, revision=None) == COMPLETED
    assert seen == [(TaskFailedError, "broken", 1, "ValueError", "no stock")] * 2


async def test_a_workflow_that_raises_fails_with_itself_as_the_cause(system: LocalSystem) -> None:
    async def body(run: Run) -> None:
        raise KeyError("amount")

    result, run_id = await execute(system, body)
    view = (await version_of(body).get(system.client(), run_id)).run
    assert (result, view.state) == (FAILED, Failed(cause=SelfCause()))
    assert view.error is not None
    assert (view.error.name, view.error.message) == ("KeyError", "'amount'")


async def test_in_a_group_the_first_failure_by_the_log_is_the_cause(system: LocalSystem) -> None:
    second_may_fail = asyncio.Event()

    @task("first")
    async def first() -> None:
        second_may_fail.set()
        raise ValueError("first")

    @task("second")
    async def second() -> None:
        await second_may_fail.wait()
        raise ValueError("second")

    async def swallow(call: Awaitable[None], errors: list[Exception]) -> None:
        try:
            await call
        except TaskFailedError as error:
            errors.append(error)

    async def body(run: Run) -> None:
        errors: list[Exception] = []
        await asyncio.gather(swallow(second.start(run), errors), swallow(first.start(run), errors))
        raise ExceptionGroup("both", errors[::-1])

    _, run_id = await execute(system, body)
    failed = [record.task_id for record in system.records(run_id) if isinstance(record, TaskFailed)]
    assert system.run(run_id).state == Failed(cause=TaskCause(task_id=failed[0]))


async def test_plain_functions_run_in_threads_with_the_callers_context_variables() -> None:
    tenant: contextvars.ContextVar[str] = contextvars.ContextVar("tenant")

    @task("plain")
    def plain() -> str:
        assert threading.current_thread() is not threading.main_thread()
        return tenant.get()

    @task("coroutine")
    async def coroutine() -> str:
        return tenant.get()

    async def body(run: Run) -> list[str]:
        async def branch(name: str) -> str:
            tenant.set(name)
            return await plain.start(run) + await coroutine.start(run)

        return list(await asyncio.gather(branch("a"), branch("b")))

    system = LocalSystem()
    result, run_id = await execute(system, body)
    assert (result, await output_of(system, run_id)) == (COMPLETED, ["aa", "bb"])


async def test_a_plain_function_may_return_an_awaitable(system: LocalSystem) -> None:
    async def later() -> str:
        return "awaited"

    @task("lazy")
    def lazy() -> Any:
        return later()

    result, run_id = await execute(system, lambda run: lazy.start(run))
    assert (result, await output_of(system, run_id)) == (COMPLETED, "awaited")


async def test_a_task_that_cancels_itself_fails_and_does_not_hang_the_run(system: LocalSystem) -> None:
    @task("self-cancelling")
    async def self_cancelling() -> None:
        raise asyncio.CancelledError

    result, run_id = await execute(system, lambda run: self_cancelling.start(run))
    failed = next(record for record in system.records(run_id) if isinstance(record, TaskFailed))
    assert (result, failed.error.name) == (FAILED, "CancelledError")
