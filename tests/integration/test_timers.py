"""Timers of workflows: around tasks, on replay, and alone."""

import asyncio
import contextlib
import gc
import logging
from collections.abc import AsyncIterator

import pytest

from aiki_push import Run, task
from aiki_push.domain.log_records import TaskCancelled, TaskCompleted, WaitEnded
from aiki_push.domain.run_states import Sleeping
from aiki_push.ports.api.checkpoints import AppendCheckpoint
from aiki_push.sdk.executor import SegmentResult
from aiki_push.testing import FakeClock
from tests.integration.crashes import PowerCut, recover
from tests.integration.executions import COMPLETED, execute, output_of, version_of
from tests.local_system import NAMESPACE, LocalSystem


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def system(clock: FakeClock) -> LocalSystem:
    return LocalSystem(clock=clock)


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


async def test_a_run_parks_though_a_handler_that_it_cancelled_took_a_moment_to_stop() -> None:
    stopping, may_stop = asyncio.Event(), asyncio.Event()

    @task("slow-to-stop")
    async def slow_to_stop() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            stopping.set()
            await may_stop.wait()

    async def body(run: Run) -> None:
        try:
            async with asyncio.timeout(0.01):
                await slow_to_stop.start(run)
        except TimeoutError:
            await asyncio.sleep(3_600)

    segment = asyncio.create_task(execute(LocalSystem(), body))
    await stopping.wait()
    may_stop.set()
    result, _ = await asyncio.wait_for(segment, timeout=20)
    assert result == SegmentResult("parked")


async def test_a_workflow_that_is_suspended_says_nothing_whatever_it_is_inside_of(
    caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    swallowed: list[str] = []
    caplog.set_level(logging.INFO)

    @task("clean-up")
    async def clean_up() -> None:
        return None

    @contextlib.asynccontextmanager
    async def resource(run: Run) -> AsyncIterator[None]:
        try:
            yield
        finally:
            await clean_up.start(run)

    async def catching() -> None:
        try:
            await asyncio.sleep(3_600)
        except Exception as error:
            swallowed.append(repr(error))

    async def cleaning(run: Run) -> None:
        try:
            await asyncio.sleep(3_600)
        finally:
            await clean_up.start(run)
            raise RuntimeError("raised by the drop")

    async def managing(run: Run) -> None:
        async with resource(run), asyncio.timeout(36_000):
            with contextlib.suppress(BaseException):
                await asyncio.sleep(3_600)
            await asyncio.sleep(3_600)

    async def body(run: Run) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(catching())
            group.create_task(cleaning(run))
            group.create_task(managing(run))

    system = LocalSystem()
    result, run_id = await execute(system, body)
    gc.collect()
    assert (result, swallowed) == (SegmentResult("parked"), [])
    assert [record for record in caplog.records if record.name.startswith(("aiki_push", "asyncio"))] == []
    assert capsys.readouterr() == ("", "")
    kinds = {record.type for record in system.records(run_id)}
    assert kinds == {"input", "transition", "wait_started"}
