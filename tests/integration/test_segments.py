"""Executions of workflows: values and errors the same first time and on replay, retries, interruptions, cancellation, timers."""

import asyncio
import contextvars
import threading
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from pydantic import BaseModel

from aiki_push import Run, WorkflowVersion, fixed, task, task_info, workflow
from aiki_push.domain.errors import NonRetryableError
from aiki_push.domain.log_records import TaskBackingOff, TaskCancelled, TaskCompleted, TaskFailed, TaskStarted, WaitEnded
from aiki_push.domain.run_states import Failed, SelfCause, Sleeping, TaskCause
from aiki_push.errors import OutcomeUnknown, TaskInterrupted
from aiki_push.errors import TaskFailed as TaskFailedError
from aiki_push.ports.api.claims import AppendCheckpoint
from aiki_push.sdk.executor import ExecutorConfig, SegmentResult
from aiki_push.testing import FakeClock
from tests.integration.crashes import PowerCut, execute_until_power_cut, recover
from tests.local_system import NAMESPACE, LocalSystem

COMPLETED = SegmentResult("completed")
FAILED = SegmentResult("failed")


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def system(clock: FakeClock) -> LocalSystem:
    return LocalSystem(clock=clock)


def version_of(body: Callable[[Run], Awaitable[Any]]) -> WorkflowVersion[[], Any]:
    @workflow("tested").v("1.0.0")
    async def tested(run: Run) -> Any:
        return await body(run)

    return tested


async def execute(system: LocalSystem, body: Callable[[Run], Awaitable[Any]], **config: int) -> tuple[SegmentResult, str]:
    version = version_of(body)
    run_id = (await version.start(system.client())).id
    return await system.executor(version, config=ExecutorConfig(**config)).execute(run_id, revision=0), run_id


async def output_of(system: LocalSystem, run_id: str) -> Any:
    handle = await version_of(lambda _: asyncio.sleep(0)).get(system.client(), run_id)
    return (await handle.wait()).value()


class Point(BaseModel):
    x: int
    tags: list[str] = []


async def test_a_result_is_the_same_value_of_the_same_type_first_time_and_on_replay(system: LocalSystem, clock: FakeClock) -> None:
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


async def test_a_task_is_tried_as_often_as_its_strategy_says_and_every_attempt_has_one_key(system: LocalSystem) -> None:
    tried: list[tuple[int, str]] = []

    @task("flaky", retry=fixed(max_attempts=3, delay_ms=1))
    async def flaky() -> str:
        tried.append((task_info().attempt, task_info().idempotency_key))
        if len(tried) < 3:
            raise ConnectionError("reset")
        return "ok"

    system = LocalSystem()
    result, run_id = await execute(system, lambda run: flaky.start(run))
    assert (result, await output_of(system, run_id)) == (COMPLETED, "ok")
    assert [attempt for attempt, _ in tried] == [1, 2, 3]
    assert len({key for _, key in tried}) == 1
    kinds = [type(record) for record in system.records(run_id) if not isinstance(record, TaskCompleted)]
    assert kinds.count(TaskBackingOff) == 2
    assert kinds.count(TaskStarted) == 3


@pytest.mark.parametrize("max_attempts", [1, 2])
async def test_a_task_that_always_fails_fails_the_run_after_exactly_its_attempts(max_attempts: int) -> None:
    tried: list[int] = []

    @task("hopeless", retry=fixed(max_attempts=max_attempts, delay_ms=1))
    def hopeless() -> None:
        tried.append(task_info().attempt)
        raise RuntimeError("never works")

    system = LocalSystem()
    result, run_id = await execute(system, lambda run: hopeless.start(run))
    failed = next(record for record in system.records(run_id) if isinstance(record, TaskFailed))
    assert (result, tried) == (FAILED, list(range(1, max_attempts + 1)))
    assert (failed.attempt, failed.error.name) == (max_attempts, "RuntimeError")
    assert system.run(run_id).state == Failed(cause=TaskCause(task_id=failed.task_id))


async def test_an_error_that_is_not_to_be_retried_ends_a_task_at_once(system: LocalSystem) -> None:
    tried: list[int] = []

    @task("strict", retry=fixed(max_attempts=5, delay_ms=1))
    async def strict() -> None:
        tried.append(1)
        raise NonRetryableError("bad card")

    result, _ = await execute(system, lambda run: strict.start(run))
    assert (result, tried) == (FAILED, [1])


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


async def test_an_execution_cut_off_by_a_crash_uses_no_attempt(system: LocalSystem, clock: FakeClock) -> None:
    tried: list[int] = []

    @task("slow", retry=fixed(max_attempts=1, delay_ms=1))
    async def slow() -> str:
        tried.append(task_info().attempt)
        return "ok"

    version = version_of(lambda run: slow.start(run))
    run_id = (await version.start(system.client())).id
    for _ in range(3):
        assert await execute_until_power_cut(system, version, run_id, after=1)
        recover(system, clock, run_id)
    assert await system.executor(version).execute(run_id, revision=None) == COMPLETED
    assert tried == [1, 1, 1, 1]
    completed = next(record for record in system.records(run_id) if isinstance(record, TaskCompleted))
    assert completed.attempt == 1


async def test_a_task_that_is_cut_off_again_and_again_is_given_up_by_name(system: LocalSystem, clock: FakeClock) -> None:
    seen: list[TaskFailedError] = []

    @task("endless")
    async def endless() -> None:
        return None

    async def body(run: Run) -> None:
        try:
            await endless.start(run)
        except TaskFailedError as error:
            seen.append(error)

    version = version_of(body)
    run_id = (await version.start(system.client())).id
    for _ in range(3):
        assert await execute_until_power_cut(system, version, run_id, after=1)
        recover(system, clock, run_id)
    config = ExecutorConfig(max_interruptions=2)
    assert await system.executor(version, config=config).execute(run_id, revision=None) == COMPLETED
    assert [(type(error), error.task) for error in seen] == [(TaskInterrupted, "endless")]


async def test_a_task_that_must_not_be_repeated_blindly_fails_with_its_outcome_unknown(system: LocalSystem, clock: FakeClock) -> None:
    ran: list[str] = []

    @task("pay", interrupted="fail")
    async def pay() -> None:
        ran.append("pay")

    async def body(run: Run) -> str:
        try:
            await pay.start(run)
        except OutcomeUnknown:
            return "ask the bank"
        return "paid"

    version = version_of(body)
    run_id = (await version.start(system.client())).id
    assert await execute_until_power_cut(system, version, run_id, after=1)
    recover(system, clock, run_id)
    assert await system.executor(version).execute(run_id, revision=None) == COMPLETED
    assert (ran, await output_of(system, run_id)) == (["pay"], "ask the bank")


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


async def test_a_timeout_around_a_task_fires_and_cancels_its_handler() -> None:
    ended: list[str] = []

    @task("long")
    async def long() -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            ended.append("cancelled")
            raise

    @task("after")
    async def after() -> str:
        return "after"

    async def body(run: Run) -> str:
        try:
            async with asyncio.timeout(0.02):
                await long.start(run)
        except TimeoutError:
            return await after.start(run)
        return "in time"

    system = LocalSystem()
    result, run_id = await execute(system, body)
    assert (result, ended, await output_of(system, run_id)) == (COMPLETED, ["cancelled"], "after")
    kinds = [type(record) for record in system.records(run_id)]
    assert kinds.index(WaitEnded) < kinds.index(TaskCancelled) < kinds.index(TaskCompleted)


async def test_a_timeout_that_fired_fires_on_every_replay_and_writes_nothing_again() -> None:
    system = LocalSystem(clock=FakeClock())

    @task("long")
    async def long() -> None:
        await asyncio.Event().wait()

    @task("after")
    async def after(number: int) -> int:
        return number

    async def body(run: Run) -> list[int]:
        try:
            async with asyncio.timeout(0.001):
                await long.start(run)
        except TimeoutError:
            return [await after.start(run, 1), await after.start(run, 2)]
        return []

    version = version_of(body)
    run_id = (await version.start(system.client())).id
    clock = system.clock
    assert isinstance(clock, FakeClock)

    api = system.faulty_api()
    sent = 0

    async def tick_then_cut(operation: object) -> None:
        nonlocal sent
        if isinstance(operation, AppendCheckpoint):
            clock.advance(1)
            sent += 1
            if sent == 3:
                raise PowerCut

    api.before = tick_then_cut
    with pytest.raises(PowerCut):
        await system.executor(version, api=api).execute(run_id, revision=None)
    recover(system, clock, run_id)
    before = [record for record in system.records(run_id) if isinstance(record, WaitEnded | TaskCancelled)]
    assert await system.executor(version).execute(run_id, revision=None) == COMPLETED
    assert [record for record in system.records(run_id) if isinstance(record, WaitEnded | TaskCancelled)] == before
    assert [type(record) for record in before] == [WaitEnded, TaskCancelled]


async def test_a_timer_alone_parks_the_run_and_it_goes_on_at_its_time(system: LocalSystem, clock: FakeClock) -> None:
    version = version_of(lambda _: asyncio.sleep(3_600, "woken"))
    run_id = (await version.start(system.client())).id
    began_at = clock.now()
    assert await system.executor(version).execute(run_id, revision=0) == SegmentResult("parked")
    parked = system.run(run_id)
    assert (parked.state, parked.due_at) == (Sleeping(wakeup_at=began_at + 3_600_000), began_at + 3_600_000)
    clock.advance(3_600_000)
    system.attention.advance(NAMESPACE, run_id)
    assert await system.executor(version).execute(run_id, revision=None) == COMPLETED
    assert await output_of(system, run_id) == "woken"
