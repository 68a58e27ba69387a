"""Attempts of whole workflows: what is kept, what runs again, and what must not be tried again."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from aiki_push import Run, WorkflowVersion, fixed, task, task_info, workflow
from aiki_push.domain.errors import NonRetryableError
from aiki_push.domain.log_records import TaskCompleted, TaskStarted, WaitStarted
from aiki_push.domain.retry import RetryStrategy
from aiki_push.domain.run_states import AwaitingRetry, Failed, Queued, SelfCause, TaskCause
from aiki_push.domain.values import TimestampMs
from aiki_push.errors import TaskFailed
from aiki_push.sdk.executor import SegmentResult
from aiki_push.testing import FakeClock
from tests.integration.crashes import execute_until_power_cut, recover
from tests.integration.executions import COMPLETED, FAILED
from tests.local_system import NAMESPACE, LocalSystem

RETRYING = SegmentResult("retrying")
THREE_TIMES = fixed(max_attempts=3, delay_ms=60_000, non_retryable=(PermissionError,))


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def system(clock: FakeClock) -> LocalSystem:
    return LocalSystem(clock=clock)


def version_of(body: Callable[[Run], Awaitable[Any]], retry: RetryStrategy = THREE_TIMES) -> WorkflowVersion[[], Any]:
    @workflow("tested").v("1.0.0", retry=retry)
    async def tested(run: Run) -> Any:
        return await body(run)

    return tested


def next_attempt(system: LocalSystem, clock: FakeClock, run_id: str) -> None:
    clock.advance(60_000)
    system.attention.advance(NAMESPACE, run_id)
    assert system.run(run_id).state == Queued(reason="retry")


async def test_a_workflow_is_tried_as_often_as_its_strategy_says_and_its_completed_tasks_run_once(
    system: LocalSystem, clock: FakeClock
) -> None:
    ran, attempts = list[str](), list[int]()

    @task("kept")
    async def kept() -> str:
        ran.append("kept")
        return "kept"

    async def body(run: Run) -> None:
        attempts.append(run.attempt)
        await kept.start(run)
        raise ConnectionError("down")

    version = version_of(body)
    run_id = (await version.start(system.client())).id
    for attempt in (1, 2):
        assert await system.executor(version).execute(run_id, revision=None) == RETRYING
        waiting = system.run(run_id)
        assert waiting.state == AwaitingRetry(cause=SelfCause(), next_attempt_at=TimestampMs(clock.now() + 60_000))
        assert (waiting.attempts, waiting.due_at) == (attempt, clock.now() + 60_000)
        next_attempt(system, clock, run_id)
    assert await system.executor(version).execute(run_id, revision=None) == FAILED
    assert (attempts, ran) == ([1, 2, 3], ["kept"])
    assert (system.run(run_id).state, system.run(run_id).attempts) == (Failed(cause=SelfCause()), 3)


async def test_a_failed_task_runs_again_under_its_old_id_with_attempts_from_one(system: LocalSystem, clock: FakeClock) -> None:
    seen: list[tuple[str, int]] = []

    @task("flaky", retry=fixed(max_attempts=2, delay_ms=1))
    async def flaky() -> str:
        seen.append((task_info().task_id, task_info().attempt))
        if len(seen) < 4:
            raise ConnectionError("reset")
        return "ok"

    version = version_of(lambda run: flaky.start(run))
    run_id = (await version.start(system.client())).id
    clock_moves = asyncio.create_task(_keep_moving(clock))
    try:
        assert await system.executor(version).execute(run_id, revision=None) == RETRYING
    finally:
        clock_moves.cancel()
    state = system.run(run_id).state
    assert isinstance(state, AwaitingRetry)
    assert isinstance(state.cause, TaskCause)
    next_attempt(system, clock, run_id)
    clock_moves = asyncio.create_task(_keep_moving(clock))
    try:
        assert await system.executor(version).execute(run_id, revision=None) == COMPLETED
    finally:
        clock_moves.cancel()
    assert [attempt for _, attempt in seen] == [1, 2, 1, 2]
    assert len({task_id for task_id, _ in seen}) == 1


async def _keep_moving(clock: FakeClock) -> None:
    """Time passes while the executor waits in place."""
    while True:
        await asyncio.sleep(0)
        clock.advance(1)


async def test_a_caught_failure_followed_by_other_tasks_is_no_divergence_when_the_task_succeeds_in_the_next_attempt(
    system: LocalSystem, clock: FakeClock
) -> None:
    is_up, ran = [False], list[str]()

    @task("first")
    async def first() -> None:
        if not is_up[0]:
            raise ConnectionError("down")

    @task("instead")
    async def instead() -> None:
        ran.append("instead")

    @task("then")
    async def then() -> None:
        ran.append("then")

    async def body(run: Run) -> str:
        try:
            await first.start(run)
        except TaskFailed:
            await instead.start(run)
            raise
        await then.start(run)
        return "done"

    version = version_of(body)
    run_id = (await version.start(system.client())).id
    assert await system.executor(version).execute(run_id, revision=None) == RETRYING
    next_attempt(system, clock, run_id)
    is_up[0] = True
    assert await execute_until_power_cut(system, version, run_id, after=2)  # a crash in the middle of attempt 2 is none either
    recover(system, clock, run_id)
    assert await system.executor(version).execute(run_id, revision=None) == COMPLETED
    assert ran == ["instead", "then", "then"]


async def test_what_the_present_attempt_has_called_is_required_and_what_an_earlier_one_called_is_not(
    system: LocalSystem, clock: FakeClock
) -> None:
    @task("step")
    async def step(name: str) -> None:
        return None

    def calling(*names: str, fails: bool = False) -> WorkflowVersion[[], Any]:
        async def body(run: Run) -> None:
            for name in names:
                await step.start(run, name)
            if fails:
                raise ConnectionError("down")

        return version_of(body)

    version = calling("a", "b", fails=True)
    run_id = (await version.start(system.client())).id
    assert await system.executor(version).execute(run_id, revision=None) == RETRYING
    next_attempt(system, clock, run_id)
    assert await execute_until_power_cut(system, calling("c", "d"), run_id, after=2)
    recover(system, clock, run_id)
    assert await system.executor(calling("e", "d")).execute(run_id, revision=None) == SegmentResult("stalled")


async def test_timers_start_anew_with_the_next_attempt(system: LocalSystem, clock: FakeClock) -> None:
    async def body(run: Run) -> None:
        await asyncio.sleep(3_600)
        raise ConnectionError("down")

    version = version_of(body)
    run_id = (await version.start(system.client())).id
    for _ in range(2):
        assert await system.executor(version).execute(run_id, revision=None) == SegmentResult("parked")
        clock.advance(3_600_000)
        system.attention.advance(NAMESPACE, run_id)
        assert await system.executor(version).execute(run_id, revision=None) == RETRYING
        next_attempt(system, clock, run_id)
    started = [record for record in system.records(run_id) if isinstance(record, WaitStarted)]
    assert [record.deadline_at and record.deadline_at - record.at for record in started] == [3_600_000] * 2
    assert started[1].at - started[0].at == 3_660_000


@pytest.mark.parametrize(
    "error",
    [NonRetryableError("no"), PermissionError("listed"), ExceptionGroup("one of", [ValueError(), NonRetryableError()])],
    ids=["non-retryable", "listed", "in a group"],
)
async def test_an_error_that_is_not_to_be_retried_fails_the_run_at_once(system: LocalSystem, error: Exception) -> None:
    async def body(run: Run) -> None:
        raise error

    version = version_of(body)
    run_id = (await version.start(system.client())).id
    assert await system.executor(version).execute(run_id, revision=None) == FAILED
    assert system.run(run_id).attempts == 1


async def test_a_task_that_is_not_to_be_retried_ends_the_workflows_retries_too_first_time_and_on_replay(
    system: LocalSystem, clock: FakeClock
) -> None:
    @task("strict")
    async def strict() -> None:
        raise NonRetryableError("bad card")

    @task("note")
    async def note() -> None:
        return None

    async def body(run: Run) -> None:
        try:
            await strict.start(run)
        except TaskFailed:
            await note.start(run)
            raise

    version = version_of(body)
    run_id = (await version.start(system.client())).id
    assert await execute_until_power_cut(system, version, run_id, after=2)
    recover(system, clock, run_id)
    assert await system.executor(version).execute(run_id, revision=None) == FAILED
    assert system.run(run_id).attempts == 1


async def test_a_task_that_must_not_be_repeated_blindly_is_not_repeated_by_a_retry_of_the_workflow(
    system: LocalSystem, clock: FakeClock
) -> None:
    ran: list[str] = []

    @task("pay", interrupted="fail")
    async def pay() -> None:
        ran.append("pay")

    version = version_of(lambda run: pay.start(run))
    run_id = (await version.start(system.client())).id
    assert await execute_until_power_cut(system, version, run_id, after=1)
    recover(system, clock, run_id)
    assert await system.executor(version).execute(run_id, revision=None) == FAILED
    assert ran == ["pay"]


async def test_an_output_that_does_not_fit_is_not_tried_again(system: LocalSystem) -> None:
    @workflow("tested").v("1.0.0", retry=THREE_TIMES)
    async def tested(run: Run) -> int:
        return "no number"  # type: ignore[return-value]  # what the test is about

    run_id = (await tested.start(system.client())).id
    assert await system.executor(tested).execute(run_id, revision=None) == FAILED
    assert [record for record in system.records(run_id) if isinstance(record, TaskStarted | TaskCompleted)] == []
