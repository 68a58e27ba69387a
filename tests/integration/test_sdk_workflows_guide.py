"""Every part of the guide does what it says."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any, cast

import pytest

from aiki_push import Client, Failed, Handle, WorkflowVersion, run_blocking
from aiki_push.adapters.signing.ed25519 import generate_signing_key, public_key_of
from aiki_push.adapters.system import SystemEntropy
from aiki_push.domain.log_records import CallEnded, TaskStarted
from aiki_push.domain.retry import Exponential
from aiki_push.domain.run import RunOptions
from aiki_push.domain.run_states import Scheduled, SelfCause
from aiki_push.sdk.workflow_version import AnyWorkflowVersion
from aiki_push.testing import Harness
from examples import workflows_guide as guide
from examples import workflows_guide_waits as waits
from tests.integration.executing_api import executing_client
from tests.local_system import LocalSystem

VERSIONS: tuple[AnyWorkflowVersion, ...] = (
    guide.order_v1,
    guide.order_with_retries,
    guide.basket_total,
    guide.onboarding_v1,
    guide.onboarding_v2,
)

ORDER = guide.Order(order_id="123", amount=5)


@asynccontextmanager
async def connected(system: LocalSystem | None = None) -> AsyncIterator[Client]:
    client = executing_client(system or LocalSystem(), *VERSIONS)
    yield client
    await client.close()


async def test_a_workflow_is_started_and_waited_for(capsys: pytest.CaptureFixture[str]) -> None:
    async with connected() as client:
        assert await guide.start_and_wait(client) == "completed: 123"
    assert capsys.readouterr().out.endswith(" queued\n")


def test_a_workflow_is_started_and_waited_for_in_a_script() -> None:
    client = executing_client(LocalSystem(), *VERSIONS)
    assert guide.start_in_a_script(client) == "123"
    run_blocking(client.close())


async def test_a_wait_ends_with_the_run_or_with_its_timeout() -> None:
    async with connected() as client:
        handle = await guide.order_v1.start(client, ORDER)
        assert await guide.wait_with_a_timeout(handle, timedelta(minutes=5)) == "ended with: completed"
        held_back = await guide.delayed.start(client, ORDER)
        assert await guide.wait_with_a_timeout(held_back, timedelta(milliseconds=10)) == "timed out waiting for the run"


def test_what_json_cannot_hold_is_refused_by_its_field() -> None:
    assert guide.define_what_json_cannot_hold() == (
        'fetch-order: output.placed_at is datetime: use str (ISO 8601) or int (milliseconds), or allow it with json="typed"'
    )


async def test_each_version_does_its_own() -> None:
    system = LocalSystem()
    async with connected(system) as client:
        handles = [await version.start(client, guide.User(user_id="1")) for version in (guide.onboarding_v1, guide.onboarding_v2)]
        ends = [(await handle.wait()).state.status for handle in handles]
    records = [system.records(handle.id) for handle in handles]
    started = [[record.name for record in each if isinstance(record, TaskStarted)] for each in records]
    assert (ends, started) == (2 * ["completed"], [["send-welcome-email"], ["send-welcome-email", "create-user-profile"]])


def test_an_endpoint_serves_the_versions_that_it_is_given() -> None:
    key = public_key_of(generate_signing_key(SystemEntropy()))
    guide.serve(Client(url="http://127.0.0.1:9850"), [key]).close()


async def test_retries_travel_with_the_run() -> None:
    async with connected() as client:
        handle = await guide.order_with_retries.start(client, ORDER)
        retry = Exponential(max_attempts=3, base_delay_ms=5_000)
        assert handle.run.options == RunOptions(retry=retry)
        assert (await handle.wait()).value() == "123"


async def test_schemas_refuse_what_does_not_fit() -> None:
    async with connected() as client:
        assert await guide.start_with_a_wrong_input(client) == (
            "order-processing: input as JSON does not fit Basket: order_id: String should have at least 1 character; "
            "items: List should have at most 100 items after validation, not 101"
        )
        good = await guide.basket_total.start(client, guide.Basket(order_id="123", items=["a"]))
        assert (await good.wait()).value() == guide.Total(success=True, total=100)
        bad = await guide.basket_total.start(client, guide.Basket(order_id="123", items=[]))
        ended = await bad.wait()
        assert isinstance(ended.state, Failed)
        assert (ended.state.cause, ended.state.error.name, ended.state.error.message) == (
            SelfCause(),
            "InvalidValue",
            "order-processing: output as JSON does not fit Total: total: Input should be greater than or equal to 0",
        )


async def test_options_are_those_of_the_runs() -> None:
    async with connected() as client:
        runs = [(await startable.start(client, ORDER)).run for startable in (guide.order_v1, guide.configured, guide.urgent)]
    assert [run.options for run in runs] == [
        RunOptions(),
        RunOptions(pool="tenant-acme", retry=Exponential(max_attempts=3, base_delay_ms=1_000)),
        RunOptions(priority=2),
    ]


async def test_delays_count_from_the_creation_of_the_run() -> None:
    async with connected() as client:
        runs = [(await startable.start(client, ORDER)).run for startable in (guide.delayed, guide.long_delayed)]
    assert [run.state for run in runs] == [
        Scheduled(scheduled_at=run.created_at + delay_ms) for run, delay_ms in zip(runs, (30_000, 5_400_000), strict=True)
    ]


def test_wrong_uses_are_refused_at_run_time_too() -> None:
    assert guide.wrong_uses(Client(url="http://127.0.0.1:9850")) == [
        "order-processing 1.0.0 has no option 'reference.di'; its options are "
        '"retry", "pool", "priority", "delay", "reference", "reference.id", "reference.conflict_policy"',
        "order-processing 1.0.0: reference.id must be a str of 1 to 256 characters without control characters; it is int",
        "SingleStart(order-processing 1.0.0) is about one particular run, and an executor runs whatever comes: give it the "
        "version as it was before with_() set its delay or reference",
    ]


async def test_a_reference_id_names_one_run() -> None:
    async with connected() as client:
        assert await guide.start_twice(client)


async def test_another_input_for_a_reference_id_is_a_conflict_or_the_run_that_exists() -> None:
    async with connected() as client:
        assert await guide.start_again_with_another_input(client) == "the run that exists"


def ended(
    version: WorkflowVersion[..., Any], given: object, act: Callable[[Handle[Any]], Awaitable[object]] | None = None
) -> Any:
    """What a run returns to which `act` was done after a day, where anything executes what it starts."""

    async def scenario() -> Any:
        handle = await version.with_("reference.id", "order-123").start(harness.client, given)
        if act is not None:
            await asyncio.sleep(86_400)
            await act(handle)
        return (await handle.wait()).value()

    served = (*VERSIONS, waits.order_with_cooling_off, waits.order_with_payment)
    with Harness(*served, *({version} - set(served))) as harness:
        return harness.run(scenario())


def test_a_sleep_ends_by_its_time_or_by_a_wake_up() -> None:
    assert ended(waits.order_with_cooling_off, ORDER) == "123 is shipped in time"
    assert ended(waits.order_with_cooling_off, ORDER, waits.ship_now) == "123 is shipped early"


def test_an_event_comes_or_does_not() -> None:
    async def pay_twice(handle: Handle[str]) -> None:
        assert [await waits.pay(handle, "t-1"), await waits.pay(handle, "t-1")] == [True, True]

    async def pay_by_reference(handle: Handle[str]) -> None:
        client = cast(Client, handle.client)  # which adds only how to connect
        assert [await waits.pay_by_reference(client, order_id) for order_id in ("order-124", "order-123")] == [False, True]

    assert ended(waits.order_with_payment, ORDER) == "123 expired"
    assert ended(waits.order_with_payment, ORDER, pay_twice) == "123 is paid by t-1"
    assert ended(waits.order_with_payment, ORDER, pay_by_reference) == "123 is paid by t-2"


def test_a_run_is_paused_resumed_and_cancelled() -> None:
    async def scenario() -> list[str]:
        handle = await waits.order_with_payment.start(harness.client, ORDER)
        await harness.settle()
        return await waits.control(handle)

    with Harness(waits.order_with_payment) as harness:
        assert harness.run(scenario()) == ["paused", "awaiting_event", "cancelled"]


def test_a_child_is_started_and_forgotten() -> None:
    async def scenario() -> list[str]:
        handle = await waits.fire_and_forget.start(harness.client, guide.User(user_id="1"))
        await handle.wait()
        await harness.settle()
        [child] = [record.run_id for record in harness.records(handle.id) if isinstance(record, CallEnded)]
        return [harness.header(child).state.status]

    with Harness(waits.fire_and_forget, guide.onboarding_v1) as harness:
        assert harness.run(scenario()) == ["completed"]


@pytest.mark.parametrize(
    ("version", "given", "output"),
    [
        (waits.wait_for_the_child, ORDER, "child output: 123"),
        (waits.wait_for_an_hour, ORDER, "the child is cancelled"),
        (waits.in_parallel, [guide.Order(order_id=order_id, amount=1) for order_id in "abc"], ["a", "b", "c"]),
        (waits.as_a_group, ORDER, "123 is processed, 123 expired"),
        (waits.with_a_reference, ORDER, True),
        (waits.with_another_input, ORDER, guide.Receipt(success=True, order_id="123")),
    ],
)
def test_children_are_waited_for(version: WorkflowVersion[..., Any], given: object, output: object) -> None:
    assert ended(version, given) == output
