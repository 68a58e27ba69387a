"""Work that is longer than an invocation: the run hands itself back before the end, and goes on in the next one."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta

import pytest

from aiki_push import Run, task, workflow
from aiki_push.apps.endpoint.aws_lambda import LambdaDoor
from aiki_push.apps.endpoint.endpoint import EndpointConfig, endpoint
from aiki_push.domain.log_records import TaskFailed, TaskStarted, Transition
from aiki_push.domain.push_message import PushData, encode_push
from aiki_push.domain.run_states import Failed, Queued, Stalled
from aiki_push.ports.clock import Clock
from aiki_push.sdk.workflow_version import AnyWorkflowVersion
from aiki_push.testing import FakeClock
from tests.local_system import NAMESPACE, LocalSystem
from tests.unit.apps.endpoint.lambda_events import http_api

INVOCATION_MS = 30_000
MARGIN_MS = 5_000
TASK_MS = 10_000

slow_clock = FakeClock()
executed: list[int] = []


def take_a_while(number: int) -> int:
    slow_clock.advance(TASK_MS)
    executed.append(number)
    return number


@task("slow")
async def slow(number: int) -> int:
    return take_a_while(number)


@task("estimated", expected_duration=timedelta(milliseconds=TASK_MS))
async def estimated(number: int) -> int:
    return take_a_while(number)


@task("too-long-for-anything", expected_duration=timedelta(hours=1))
async def too_long_for_anything() -> None:
    executed.append(0)


@task("endless")
async def endless() -> None:
    await asyncio.sleep(3_600)


@workflow("long").v("1")
async def long_v1(run: Run, is_estimated: bool) -> list[int]:
    step = estimated if is_estimated else slow
    return [await step.start(run, number) for number in range(13)]


@workflow("impossible").v("1")
async def impossible_v1(run: Run) -> None:
    await too_long_for_anything.start(run)


@workflow("stuck").v("1")
async def stuck_v1(run: Run) -> None:
    await endless.start(run)


@dataclass
class Invocation:
    """Lambda's context object, as far as it matters: when the invocation ends by `clock`."""

    clock: Clock
    ends_at_ms: float

    def get_remaining_time_in_millis(self) -> int:
        return int(self.ends_at_ms - self.clock.monotonic_ms())


@contextmanager
def door_of(system: LocalSystem, *versions: AnyWorkflowVersion, margin_ms: int = MARGIN_MS) -> Iterator[LambdaDoor]:
    config = EndpointConfig(deadline_margin_ms=margin_ms)
    made = endpoint(workflows=versions, client=system.client(), insecure=True, config=config)
    try:
        yield made.lambda_handler
    finally:
        made.close()


def invoke_until_it_is_over(system: LocalSystem, door: LambdaDoor, run_id: str, *, invocation_ms: int) -> list[str]:
    """Push the run as long as it is queued, each time to a new invocation; the outcomes that the endpoint answered."""
    outcomes: list[str] = []
    while isinstance((run := system.run(run_id)).state, Queued):
        data = PushData(
            run_id=run.id,
            workflow=run.workflow,
            version=run.version,
            pool=None,
            revision=run.revision,
            namespace=NAMESPACE,
            audience=None,
        )
        context = Invocation(system.clock, system.clock.monotonic_ms() + invocation_ms)
        outcomes.append(door(http_api({}, encode_push(data, system.clock.now())), context)["body"])
    return [outcome.removeprefix('{"outcome":"').removesuffix('"}') for outcome in outcomes]


@pytest.fixture
def system() -> LocalSystem:
    executed.clear()
    return LocalSystem(clock=slow_clock)


@pytest.mark.parametrize(
    ("is_estimated", "a_day", "invocations"),
    [
        pytest.param(False, 3, 5, id="a task is begun as long as any time is left"),
        pytest.param(True, 2, 7, id="a task is begun only where it fits"),
    ],
)
def test_a_run_five_times_as_long_as_an_invocation_goes_on_from_one_to_the_next(
    system: LocalSystem, is_estimated: bool, a_day: int, invocations: int
) -> None:
    run_id = asyncio.run(long_v1.start(system.client(), is_estimated)).id
    began_at = system.clock.now()
    with door_of(system, long_v1) as door:
        outcomes = invoke_until_it_is_over(system, door, run_id, invocation_ms=INVOCATION_MS)
    assert outcomes == ["yielded"] * (invocations - 1) + ["completed"]
    assert executed == list(range(13))
    # No claim went stale: not a millisecond passed but that of the tasks.
    assert system.clock.now() - began_at == 13 * TASK_MS >= 4 * INVOCATION_MS
    records = system.records(run_id)
    assert len([one for one in records if isinstance(one, TaskStarted)]) == 13
    reasons = [one.state.reason for one in records if isinstance(one, Transition) and isinstance(one.state, Queued)]
    assert reasons == ["new"] + ["yield"] * (invocations - 1)


def test_a_task_that_fits_into_no_invocation_stalls_its_run_by_name(system: LocalSystem) -> None:
    run_id = asyncio.run(impossible_v1.start(system.client())).id
    with door_of(system, impossible_v1) as door:
        outcomes = invoke_until_it_is_over(system, door, run_id, invocation_ms=INVOCATION_MS)
    assert executed == []
    assert outcomes == ["yielded"] * (len(outcomes) - 1) + ["stalled"]
    assert system.run(run_id).state == Stalled(reason="crash_loop")
    last = system.records(run_id)[-1]
    assert isinstance(last, Transition)
    assert last.explanation is not None
    assert "too-long-for-anything" in last.explanation


def test_a_task_that_outlives_every_invocation_fails_by_name_and_its_run_is_no_endless_loop() -> None:
    system = LocalSystem()
    run_id = asyncio.run(stuck_v1.start(system.client())).id
    with door_of(system, stuck_v1, margin_ms=50) as door:
        outcomes = invoke_until_it_is_over(system, door, run_id, invocation_ms=150)
    assert outcomes == ["yielded"] * 6 + ["failed"]
    assert isinstance(system.run(run_id).state, Failed)
    [failed] = [one for one in system.records(run_id) if isinstance(one, TaskFailed)]
    assert failed.error.name == "TaskInterrupted"
