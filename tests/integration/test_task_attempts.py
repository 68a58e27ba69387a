"""Attempts of tasks: retries by strategy, and executions that were cut off, which use none."""

import asyncio

import pytest

from aiki_push import Run, Task, fixed, task, task_info
from aiki_push.domain.errors import NonRetryableError
from aiki_push.domain.log_records import TaskBackingOff, TaskCompleted, TaskFailed, TaskStarted
from aiki_push.domain.run_states import AwaitingTaskRetry, Failed, Queued, TaskCause
from aiki_push.domain.values import TimestampMs
from aiki_push.errors import OutcomeUnknown, TaskInterrupted
from aiki_push.errors import TaskFailed as TaskFailedError
from aiki_push.sdk.executor import ExecutorConfig, SegmentResult
from aiki_push.testing import FakeClock
from tests.integration.crashes import execute_until_power_cut, recover
from tests.integration.executions import COMPLETED, FAILED, execute, output_of, version_of
from tests.local_system import NAMESPACE, LocalSystem


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def system(clock: FakeClock) -> LocalSystem:
    return LocalSystem(clock=clock)


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


async def test_a_task_that_must_not_be_repeated_blindly_fails_with_its_outcome_unknown(
    system: LocalSystem, clock: FakeClock
) -> None:
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


async def test_a_run_in_which_nothing_else_goes_on_is_parked_until_the_next_attempt(
    system: LocalSystem, clock: FakeClock
) -> None:
    tried: list[int] = []

    @task("flaky", retry=fixed(max_attempts=3, delay_ms=60_000))
    async def flaky() -> str:
        tried.append(task_info().attempt)
        if len(tried) < 3:
            raise ConnectionError("reset")
        return "ok"

    version = version_of(lambda run: flaky.start(run))
    run_id = (await version.start(system.client())).id
    for attempt in (1, 2):
        assert await system.executor(version).execute(run_id, revision=None) == SegmentResult("parked")
        parked = system.run(run_id)
        assert (parked.state, parked.attempts) == (AwaitingTaskRetry(next_attempt_at=TimestampMs(clock.now() + 60_000)), 1)
        assert tried == list(range(1, attempt + 1))
        clock.advance(60_000)
        system.attention.advance(NAMESPACE, run_id)
        assert system.run(run_id).state == Queued(reason="task_retry")
    assert await system.executor(version).execute(run_id, revision=None) == COMPLETED
    assert (tried, await output_of(system, run_id)) == ([1, 2, 3], "ok")


async def test_several_tasks_back_off_side_by_side_each_until_its_own_time(system: LocalSystem, clock: FakeClock) -> None:
    tried: list[str] = []

    def failing_once(name: str, delay_ms: int) -> Task[[], str]:
        @task(name, retry=fixed(max_attempts=2, delay_ms=delay_ms))
        async def failing() -> str:
            tried.append(f"{name} {task_info().attempt}")
            if task_info().attempt == 1:
                raise ConnectionError("reset")
            return name

        return failing

    quick, slow = failing_once("quick", 1_000), failing_once("slow", 60_000)

    async def body(run: Run) -> list[str]:
        return list(await asyncio.gather(slow.start(run), quick.start(run)))

    version = version_of(body)
    run_id = (await version.start(system.client())).id
    began_at = clock.now()
    due = []
    while await system.executor(version).execute(run_id, revision=None) == SegmentResult("parked"):
        due_at = system.run(run_id).due_at
        assert due_at is not None
        due.append(due_at - began_at)
        clock.set(due_at)
        system.attention.advance(NAMESPACE, run_id)
    assert due == [1_000, 60_000]
    assert sorted(tried[:2]) == ["quick 1", "slow 1"]
    assert tried[2:] == ["quick 2", "slow 2"]
    assert await output_of(system, run_id) == ["slow", "quick"]


async def test_a_task_that_backs_off_beside_a_running_one_is_tried_again_in_place() -> None:
    tried, is_retried = [], asyncio.Event()

    @task("flaky", retry=fixed(max_attempts=2, delay_ms=20))
    async def flaky() -> None:
        tried.append(task_info().attempt)
        if task_info().attempt == 1:
            raise ConnectionError("reset")
        is_retried.set()

    @task("long")
    async def long() -> None:
        await is_retried.wait()

    async def body(run: Run) -> None:
        await asyncio.gather(long.start(run), flaky.start(run))

    system = LocalSystem()
    result, run_id = await execute(system, body)
    assert (result, tried, system.run(run_id).revision) == (COMPLETED, [1, 2], 2)
