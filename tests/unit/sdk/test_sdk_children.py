"""Children: what they are started with, that they are started once, and how their ends are told."""

import asyncio
from datetime import timedelta
from typing import Any

import pytest
from pydantic import BaseModel

from aiki_push import (
    Cancelled,
    Completed,
    Failed,
    Finished,
    Run,
    TimedOut,
    exponential,
    fixed,
    workflow,
)
from aiki_push.domain.log_records import CallEnded, RecordedError
from aiki_push.domain.run import RunOptions
from aiki_push.domain.run_states import ChildWorkflowCause, SelfCause, Stalled
from aiki_push.domain.values import RunId
from aiki_push.errors import ChildFailed, ReferenceConflict
from aiki_push.testing import Harness
from tests.unit.sdk.bodies import end_of, output_of, version_of

HOUR = timedelta(hours=1)


class Order(BaseModel):
    order_id: str
    amount: int = 5


@workflow("shipment").v("1.0.0")
async def shipment(run: Run, order: Order) -> str:
    if order.amount == 0:
        raise LookupError("nothing to ship")
    await run.sleep("packing", order.amount * HOUR)
    return f"shipped {order.order_id}"


@workflow("audit").v("1.0.0")
async def audit(run: Run) -> None: ...


ORDER = Order(order_id="123")


def test_a_child_has_its_own_input_and_its_end_is_its_output() -> None:
    async def body(run: Run) -> Any:
        child = await shipment.start_as_child(run, ORDER)
        assert repr(child) == f"ChildHandle({child.id})"
        assert await child.wait() == Finished(child.id, Completed("shipped 123"), is_child=True)
        return [(await child.wait()).value(), await (await audit.start_as_child(run)).wait() is not None]

    assert output_of(body, shipment, audit) == ["shipped 123", True]


def test_any_number_of_waits_early_and_late_is_given_the_same_end() -> None:
    async def body(run: Run) -> Any:
        child = await shipment.start_as_child(run, ORDER)
        first = await child.wait(timeout=HOUR)
        second, third = await asyncio.gather(child.wait(), child.wait(timeout=100 * HOUR))
        await run.sleep("later", 100 * HOUR)
        fourth = await child.wait(timeout=HOUR)
        assert first == TimedOut()
        assert second == third == fourth
        return second.value()

    assert output_of(body, shipment) == "shipped 123"


def test_a_child_that_failed_is_told_with_its_error_and_is_the_cause_where_nobody_catches_it() -> None:
    children: list[str] = []

    async def body(run: Run) -> Any:
        child = await shipment.start_as_child(run, Order(order_id="123", amount=0))
        end = await child.wait()
        children.append(child.id)
        assert isinstance(end.state, Failed)
        error = end.state.error.model_copy(update={"stack": None})
        assert (end.state.cause, error) == (SelfCause(), RecordedError(name="LookupError", message="nothing to ship"))
        return end.value()

    ended = end_of(body, shipment)
    [child_id] = set(children)
    assert isinstance(ended.state, Failed)
    assert (ended.state.cause, ended.state.error.name, ended.state.error.message) == (
        ChildWorkflowCause(run_id=RunId(child_id)),
        "ChildFailed",
        f"run {child_id} is failed: LookupError: nothing to ship",
    )


def test_a_child_that_was_cancelled_is_told_with_the_explanation() -> None:
    async def body(run: Run) -> Any:
        child = await shipment.start_as_child(run, ORDER)
        await child.cancel("ordered twice")
        end = await child.wait()
        assert end == Finished(child.id, Cancelled("ordered twice"), is_child=True)
        with pytest.raises(ChildFailed) as failed:
            end.value()
        assert (failed.value.run_id, failed.value.status, failed.value.error) == (child.id, "cancelled", None)
        return str(failed.value) == f"run {child.id} is cancelled"

    assert output_of(body, shipment)


def test_of_several_children_in_an_exception_group_the_one_that_failed_first_is_the_cause() -> None:
    async def failing(run: Run) -> Any:
        await run.sleep("before", 2 * HOUR if run.options.priority else HOUR)
        raise LookupError

    async def body(run: Run) -> Any:
        children = [await version.start_as_child(run) for version in (late, late.with_("priority", 0))]
        ends = await asyncio.gather(*(child.wait() for child in children))
        raise ExceptionGroup("both", [ChildFailed(end.run_id, end.state.status, None) for end in ends])

    async def scenario() -> None:
        handle = await version.start(harness.client)
        ended = await handle.wait()
        _, early = [record.run_id for record in harness.records(handle.id) if isinstance(record, CallEnded)]
        assert isinstance(ended.state, Failed)
        assert ended.state.cause == ChildWorkflowCause(run_id=early)

    late, version = version_of(failing, "late"), version_of(body)
    with Harness(version, late) as harness:
        harness.run(scenario())


def test_pool_and_priority_are_the_parents_unless_the_child_has_its_own() -> None:
    async def body(run: Run) -> Any:
        plain = shipment.with_("retry", fixed(max_attempts=2, delay_ms=1))
        own = shipment.with_("pool", "tenant-b").with_("priority", 0)
        single = plain.with_("reference.id", "order-123").with_("pool", "tenant-c")
        return [(await version.start_as_child(run, ORDER)).id for version in (plain, own, single)]

    async def scenario() -> None:
        handle = await version.with_("pool", "tenant-a").with_("priority", 9).start(harness.client)
        ids = (await handle.wait()).value()
        retry = fixed(max_attempts=2, delay_ms=1)
        assert [harness.header(run_id).options for run_id in ids] == [
            RunOptions(pool="tenant-a", priority=9, retry=retry),
            RunOptions(pool="tenant-b", priority=0),
            RunOptions(pool="tenant-c", priority=9, retry=retry),
        ]

    version = version_of(body)
    with Harness(version, shipment) as harness:
        harness.run(scenario())


def test_starts_with_the_same_input_are_as_many_children_and_with_a_reference_they_are_one() -> None:
    async def body(run: Run) -> Any:
        ids = [(await shipment.start_as_child(run, ORDER)).id for _ in range(2)]
        single = shipment.with_("reference.id", "order-123")
        ids += [(await single.start_as_child(run, ORDER)).id for _ in range(2)]
        return ids

    first, second, third, fourth = output_of(body, shipment)
    assert len({first, second, third}) == 3
    assert third == fourth


def test_a_replay_starts_nothing_again_and_neither_does_another_attempt_of_the_workflow() -> None:
    attempts: list[int] = []

    @workflow("parent").v("1.0.0", retry=exponential(max_attempts=2, base_delay_ms=60_000))
    async def parent(run: Run) -> list[str]:
        child = await shipment.start_as_child(run, ORDER)
        shipped = (await child.wait()).value()
        await run.sleep("rest", HOUR)
        attempts.append(run.attempt)
        if run.attempt == 1:
            raise RuntimeError("once")
        return [child.id, shipped]

    async def scenario() -> None:
        handle = await parent.start(harness.client)
        child_id, shipped = (await handle.wait()).value()
        calls = [record.run_id for record in harness.records(handle.id) if isinstance(record, CallEnded)]
        assert (shipped, calls, attempts) == ("shipped 123", [child_id], [1, 2])

    with Harness(parent, shipment) as harness:
        harness.run(scenario())


def test_a_reference_with_another_input_is_a_conflict_or_the_run_that_exists() -> None:
    async def body(run: Run) -> Any:
        single = shipment.with_("reference.id", "order-123")
        first = await single.start_as_child(run, ORDER)
        other = Order(order_id="124")
        existing = await shipment.with_("reference", {"id": "order-123", "conflict_policy": "return_existing"}).start_as_child(
            run, other
        )
        assert existing.id == first.id
        with pytest.raises(ReferenceConflict) as conflict:
            await single.start_as_child(run, other)
        return [first.id, str(conflict.value)]

    first, message = output_of(body, shipment)
    assert message == (
        f"the reference is in use by run {first} of shipment 1.0.0, which was started with another input; "
        'choose another reference, or take that run by the conflict policy "return_existing"'
    )


def test_a_run_that_ended_before_it_is_found_by_its_reference_has_its_end_at_once() -> None:
    async def body(run: Run) -> Any:
        child = await shipment.with_("reference.id", "order-123").start_as_child(run, ORDER)
        return [child.id, (await child.wait(timeout=HOUR)).value()]  # type: ignore[union-attr]  # it has ended

    async def scenario() -> None:
        existing = await shipment.with_("reference.id", "order-123").start(harness.client, ORDER)
        await existing.wait()
        handle = await version.start(harness.client)
        assert (await handle.wait()).value() == [existing.id, "shipped 123"]

    version = version_of(body)
    with Harness(version, shipment) as harness:
        harness.run(scenario())


def test_a_delayed_child_begins_later() -> None:
    async def body(run: Run) -> Any:
        child = await shipment.with_("delay", 10 * HOUR).start_as_child(run, Order(order_id="123", amount=1))
        await child.wait()
        return run.now().isoformat()

    assert output_of(body, shipment) == "2026-01-01T11:00:00+00:00"


def test_an_output_that_no_longer_fits_stalls_the_parent_and_names_the_child() -> None:
    @workflow("shipment").v("1.0.0")
    async def as_before(run: Run) -> str:
        return "shipped"

    @workflow("shipment").v("1.0.0")
    async def as_now(run: Run) -> int:
        return 1

    async def body(run: Run) -> Any:
        child = await as_now.start_as_child(run)
        return (await child.wait()).value()

    async def scenario() -> None:
        handle = await version.start(harness.client)
        await harness.settle()
        assert (await handle.refresh()).state == Stalled(reason="cannot_restore")
        assert handle.run.explanation == "shipment: output does not fit int: Input should be int, not str"

    version = version_of(body)
    with Harness(version, as_before) as harness:
        harness.run(scenario())
