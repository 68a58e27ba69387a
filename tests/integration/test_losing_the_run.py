"""What an executor does when the run is taken from it, when the server does not answer, and when it is about to be silent."""

import asyncio
import contextlib
import gc
import logging
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest

from aiki_push import Run, task
from aiki_push.domain.changes import SaveRun
from aiki_push.domain.errors import ServerUnreachable, SettingsError
from aiki_push.domain.limits import Limits
from aiki_push.domain.log_records import TaskCompleted, TaskStarted, Transition, UnknownRecord
from aiki_push.domain.run_states import Queued, Stalled
from aiki_push.domain.values import TimestampMs
from aiki_push.ports.api.checkpoints import AppendCheckpoint, HandBack
from aiki_push.ports.api.operation import Operation
from aiki_push.ports.api.runs import StartRun
from aiki_push.sdk.executor import ExecutorConfig, SegmentResult
from aiki_push.testing import FakeClock
from tests.integration.crashes import recover
from tests.integration.executions import version_of
from tests.local_system import NAMESPACE, LocalSystem

Hook = Callable[[Operation[Any]], Awaitable[None]]


@task("one")
async def one() -> str:
    return "1"


@task("two")
async def two() -> str:
    return "2"


async def both(run: Run) -> str:
    return await one.start(run) + await two.start(run)


def unanswered(kind: type[Operation[Any]], times: int) -> Hook:
    """The answer of the first `times` requests of this kind is lost."""
    left = times

    async def hook(operation: Operation[Any]) -> None:
        nonlocal left
        if isinstance(operation, kind) and left:
            left -= 1
            raise ServerUnreachable("connection reset")

    return hook


@pytest.mark.parametrize("is_arrived", [True, False], ids=["answer lost", "request lost"])
async def test_a_checkpoint_without_an_answer_is_repeated_and_is_one_checkpoint(is_arrived: bool) -> None:
    system = LocalSystem()
    run_id = (await version_of(both).start(system.client())).id
    api = system.faulty_api()
    hook = unanswered(AppendCheckpoint, 1)
    if is_arrived:
        api.after = hook
    else:
        api.before = hook
    assert await system.executor(version_of(both), api=api).execute(run_id, revision=0) == SegmentResult("completed")
    started = [record.name for record in system.records(run_id) if isinstance(record, TaskStarted)]
    sent = [operation.checkpoint_id for operation in api.called if isinstance(operation, AppendCheckpoint)]
    assert started == ["one", "two"]
    assert (len(sent), len(set(sent))) == (4, 3)


async def test_a_finish_without_an_answer_is_repeated_and_is_one_finish() -> None:
    system = LocalSystem()
    run_id = (await version_of(both).start(system.client())).id
    api = system.faulty_api()

    async def lose_the_finish(operation: Operation[Any]) -> None:
        if isinstance(operation, AppendCheckpoint) and operation.end and api.called.count(operation) == 1:
            raise ServerUnreachable("connection reset")

    api.after = lose_the_finish
    assert await system.executor(version_of(both), api=api).execute(run_id, revision=0) == SegmentResult("completed")
    assert [record.revision for record in system.records(run_id) if isinstance(record, Transition)] == [0, 1, 2]


async def test_a_server_that_stays_silent_ends_the_segment_unsettled_and_uses_no_attempt() -> None:
    clock = FakeClock()
    system = LocalSystem(clock=clock)
    run_id = (await version_of(both).start(system.client())).id
    api = system.faulty_api()

    async def silence(operation: Operation[Any]) -> None:
        if isinstance(operation, AppendCheckpoint) and len(api.called) > 2:
            clock.advance(30_000)
            raise ServerUnreachable("no route")

    api.before = silence
    assert await system.executor(version_of(both), api=api).execute(run_id, revision=0) == SegmentResult("unsettled")
    recover(system, clock, run_id)
    assert await system.executor(version_of(both)).execute(run_id, revision=None) == SegmentResult("completed")
    assert [record.attempt for record in system.records(run_id) if isinstance(record, TaskCompleted)] == [1, 1]


@pytest.mark.parametrize("is_arrived", [True, False], ids=["append arrived", "append lost"])
async def test_an_append_that_is_given_up_hides_nothing(is_arrived: bool) -> None:
    clock = FakeClock()
    system = LocalSystem(clock=clock)
    run_id = (await version_of(both).start(system.client())).id
    api = system.faulty_api()

    async def lose_appends(operation: Operation[Any]) -> None:
        if isinstance(operation, AppendCheckpoint) and not isinstance(operation.end, HandBack) and operation.position == 1:
            clock.advance(30_000)
            raise ServerUnreachable("connection reset")

    if is_arrived:
        api.after = lose_appends
    else:
        api.before = lose_appends
    result = await system.executor(version_of(both), api=api).execute(run_id, revision=0)
    if is_arrived:
        assert result == SegmentResult("completed")
    else:
        assert (result, system.run(run_id).state) == (SegmentResult("yielded"), Queued(reason="yield"))
        assert await system.executor(version_of(both)).execute(run_id, revision=None) == SegmentResult("completed")
    names = [
        f"{record.type} {record.task_id[:6]}"
        for record in system.records(run_id)
        if isinstance(record, TaskStarted | TaskCompleted)
    ]
    assert len(names) == len(set(names)) == 4


async def taken_away_in(body: Callable[[Run], Awaitable[Any]], waits: asyncio.Event) -> SegmentResult:
    """Execute `body`; once it `waits`, somebody takes the run away, which the executor's keeper hears."""
    clock = FakeClock()
    system = LocalSystem(clock=clock)
    run_id = (await version_of(body).start(system.client())).id
    executor = system.executor(version_of(body), config=ExecutorConfig(claim_refresh_interval_ms=1))
    segment = asyncio.create_task(executor.execute(run_id, revision=0))
    await waits.wait()
    system.context.change(NAMESPACE, run_id, lambda run: (SaveRun(run.model_copy(update={"revision": run.revision + 1})),))
    before = system.records(run_id)
    result = await segment
    assert system.records(run_id) == before
    return result


async def test_a_workflow_that_is_abandoned_says_nothing_whatever_it_is_inside_of(
    caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level(logging.DEBUG)
    waits, handler_ended, swallowed = asyncio.Event(), list[str](), list[str]()

    @task("endless")
    async def endless(number: int) -> None:
        if number == 5:
            waits.set()
        try:
            await asyncio.Event().wait()
        finally:
            handler_ended.append("ended")

    @contextlib.asynccontextmanager
    async def resource(run: Run) -> AsyncIterator[None]:
        try:
            yield
        finally:
            await one.start(run)

    async def catching(run: Run) -> None:
        try:
            await endless.start(run, 1)
        except Exception as error:
            swallowed.append(repr(error))

    async def cleaning(run: Run) -> None:
        try:
            await endless.start(run, 2)
        finally:
            assert run.suspending
            await two.start(run)

    async def managing(run: Run) -> None:
        async with resource(run), asyncio.timeout(600):
            await endless.start(run, 3)

    async def suppressing(run: Run) -> None:
        with contextlib.suppress(BaseException):
            await endless.start(run, 4)
        raise RuntimeError("raised by the drop")

    async def grouped(run: Run) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(endless.start(run, 5))

    async def body(run: Run) -> None:
        await asyncio.gather(catching(run), cleaning(run), managing(run), suppressing(run), grouped(run))

    assert await taken_away_in(body, waits) == SegmentResult("lost")
    gc.collect()
    ours = [record for record in caplog.records if "no longer" not in record.getMessage() and record.name != "asyncio"]
    assert (ours, swallowed) == ([], [])
    assert [record for record in caplog.records if record.levelno > logging.INFO] == []
    assert capsys.readouterr() == ("", "")
    assert handler_ended == ["ended"] * 5


async def test_a_refused_checkpoint_starts_nothing_more() -> None:
    clock = FakeClock()
    system = LocalSystem(clock=clock)
    ran: list[str] = []

    @task("first")
    async def first() -> None:
        recover(system, clock, run_id)
        ran.append("first")

    @task("second")
    async def second() -> None:
        ran.append("second")

    async def body(run: Run) -> None:
        await first.start(run)
        await second.start(run)

    version = version_of(body)
    run_id = (await version.start(system.client())).id
    assert await system.executor(version).execute(run_id, revision=0) == SegmentResult("lost")
    assert ran == ["first"]
    assert system.run(run_id).state == Queued(reason="recovery")


async def test_a_handler_that_blocks_everything_for_longer_than_the_idle_timeout_keeps_its_claim() -> None:
    idle_timeout_ms = 400
    system = LocalSystem(limits=Limits(claim_idle_timeout_ms=idle_timeout_ms))

    @task("spinning")
    async def spinning() -> int:
        until_ms, rounds = system.clock.monotonic_ms() + 3 * idle_timeout_ms, 0
        while system.clock.monotonic_ms() < until_ms:
            rounds += 1
        return rounds

    version = version_of(lambda run: spinning.start(run))
    run_id = (await version.start(system.client())).id
    stopped = threading.Event()

    def look_after_it() -> None:
        while not stopped.wait(0.02):
            system.attention.advance(NAMESPACE, run_id)

    sweeper = threading.Thread(target=look_after_it)
    sweeper.start()
    try:
        config = ExecutorConfig(claim_refresh_interval_ms=50)
        assert await system.executor(version, config=config).execute(run_id, revision=0) == SegmentResult("completed")
    finally:
        stopped.set()
        sweeper.join()
    assert system.run(run_id).revision == 2


async def test_a_refresh_interval_that_does_not_fit_the_servers_timeout_executes_nothing() -> None:
    system = LocalSystem(limits=Limits(claim_idle_timeout_ms=60_000))
    run_id = (await version_of(both).start(system.client())).id
    config = ExecutorConfig(claim_refresh_interval_ms=30_000)
    executor = system.executor(version_of(both), config=config)
    for _ in range(2):
        with pytest.raises(SettingsError, match="less than half of the server's claim_idle_timeout_ms, which is 60000"):
            await executor.execute(run_id, revision=None)
    run = system.run(run_id)
    assert (run.state, run.revision) == (Queued(reason="released"), 2)  # it was claimed once and not again


async def test_a_record_of_a_newer_release_stalls_the_run_with_a_clear_reason() -> None:
    system = LocalSystem()
    run_id = (await version_of(both).start(system.client())).id
    run = system.run(run_id)
    newer = UnknownRecord(type="task_teleported", at=TimestampMs(1))
    tail = run.tail.model_copy(update={"records": (*run.tail.records, newer)})
    system.store.commit(SaveRun(run.model_copy(update={"tail": tail})))
    assert await system.executor(version_of(both)).execute(run_id, revision=0) == SegmentResult("stalled")
    handle = await version_of(both).get(system.client(), run_id)
    assert handle.run.state == Stalled(reason="unknown_record")
    assert handle.run.explanation is not None
    assert "'task_teleported'" in handle.run.explanation


async def test_an_executor_without_the_version_gives_the_run_back() -> None:
    system = LocalSystem()
    run_id = system.server.call(NAMESPACE, StartRun(workflow="another", version="1")).id
    assert await system.executor(version_of(both)).execute(run_id, revision=0) == SegmentResult("released")
    assert system.run(run_id).state == Queued(reason="released")
