"""DynamoDB refuses three calls in ten, as it does when it is short of capacity."""

import asyncio
from collections import Counter
from collections.abc import Callable
from random import Random
from typing import TYPE_CHECKING

import pytest

from aiki_push import Run, WorkflowVersion, task, workflow
from aiki_push.domain.log_records import TaskStarted, Transition
from aiki_push.sdk.executor import SegmentResult
from aiki_push.testing import FakeClock
from tests.contracts.test_dynamodb_faults import Parameters, cancelled, refusal, table_with
from tests.integration.crashes import execute_until_power_cut, recover
from tests.local_system import NAMESPACE, LocalSystem

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

SHARE = 0.3
SINGLE = ("ProvisionedThroughputExceededException", "ThrottlingException", "TransactionConflictException")
TRANSACTION = ("ProvisionedThroughputExceeded", "ThrottlingError", "TransactionConflict")

seeds = pytest.mark.parametrize("seed", range(5))


class Throttling:
    """Refuses a share of the calls, the same ones for the same seed, before anything is read or written."""

    def __init__(self, seed: int) -> None:
        self._random = Random(seed)
        self.refused = 0
        self.operations: set[str] = set()

    def __call__(self, name: str, parameters: Parameters, operation: Callable[..., object]) -> object:
        self.operations.add(name)
        if self._random.uniform(0, 1) >= SHARE:
            return operation(**parameters)
        self.refused += 1
        if name == "transact_write_items":
            others = ["None"] * (len(parameters["TransactItems"]) - 1)
            raise cancelled(self._random.choice(TRANSACTION), *others)
        raise refusal(self._random.choice(SINGLE))


def counting(executed: Counter[int]) -> WorkflowVersion[[], int]:
    """Twenty tasks, the last ten of them side by side."""

    @task("step")
    async def step(number: int) -> int:
        executed[number] += 1
        return number

    @workflow("twenty-steps").v("1.0.0")
    async def twenty_steps(run: Run) -> int:
        total = 0
        for number in range(10):
            total += await step.start(run, number)
        return total + sum(await asyncio.gather(*(step.start(run, number) for number in range(10, 20))))

    return twenty_steps


def attempts(system: LocalSystem, run_id: str) -> set[int]:
    return {record.attempt for record in system.records(run_id) if isinstance(record, TaskStarted)}


def transitions(system: LocalSystem, run_id: str) -> list[tuple[int, str]]:
    return [(record.revision, record.state.status) for record in system.records(run_id) if isinstance(record, Transition)]


@seeds
async def test_a_run_completes_though_three_calls_in_ten_are_throttled_and_uses_up_no_attempt(
    dynamodb: "DynamoDBClient", table_name: str, seed: int
) -> None:
    executed: Counter[int] = Counter()
    twenty_steps, throttling = counting(executed), Throttling(seed)
    system = LocalSystem(table_with(dynamodb, table_name, throttling), clock=FakeClock())
    handle = await twenty_steps.start(system.client())
    system.attention.advance(NAMESPACE, handle.id)
    [offered] = system.publisher.offered
    assert await system.executor(twenty_steps).execute(offered.run_id, revision=offered.revision) == SegmentResult("completed")

    assert (await handle.wait()).value() == sum(range(20))
    assert executed == Counter(range(20))
    assert attempts(system, handle.id) == {1}
    assert transitions(system, handle.id) == [(0, "queued"), (1, "running"), (2, "completed")]
    assert throttling.refused >= 5


@seeds
async def test_a_run_is_recovered_and_completes_though_three_calls_in_ten_are_throttled(
    dynamodb: "DynamoDBClient", table_name: str, seed: int
) -> None:
    executed: Counter[int] = Counter()
    twenty_steps, throttling, clock = counting(executed), Throttling(seed), FakeClock()
    system = LocalSystem(table_with(dynamodb, table_name, throttling), clock=clock)
    handle = await twenty_steps.start(system.client())
    assert await execute_until_power_cut(system, twenty_steps, handle.id, after=5)
    recover(system, clock, handle.id)
    assert await system.executor(twenty_steps).execute(handle.id, revision=2) == SegmentResult("completed")

    assert (await handle.wait()).value() == sum(range(20))
    assert (set(executed), executed.total()) == (set(range(20)), 21)
    assert attempts(system, handle.id) == {1}
    assert transitions(system, handle.id) == [(0, "queued"), (1, "running"), (2, "queued"), (3, "running"), (4, "completed")]
    assert "transact_write_items" in throttling.operations
    assert throttling.refused >= 5
