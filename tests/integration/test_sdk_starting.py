"""Starting runs and finding them again, by id and by reference; and outputs that do not fit."""

import asyncio
from datetime import timedelta
from typing import Annotated, Any

import pytest
from pydantic import BaseModel, Field

from aiki_push import Completed, Failed, Finished, Run, fixed, workflow
from aiki_push.domain.log_records import InputRecord, Transition
from aiki_push.domain.run_states import Queued, SelfCause
from aiki_push.errors import NotFound, ReferenceConflict, SettingsError
from tests.integration.replays import Replaying


class Order(BaseModel):
    order_id: str
    amount: Annotated[int, Field(gt=0)] = 1


orders = workflow("order-processing")


@orders.v("1.0.0", retry=fixed(max_attempts=3, delay_ms=1))
async def order_v1(run: Run, order: Order) -> Order:
    return order.model_copy(update={"amount": order.amount - 5})


@orders.v("2.0.0")
async def order_v2(run: Run, order: Order) -> Order:
    return order


TEN = Order(order_id="123", amount=10)


@pytest.fixture
def stage() -> Replaying:
    return Replaying(order_v1, order_v2)


async def test_starts_with_one_reference_are_one_run_however_many_there_are(stage: Replaying) -> None:
    single = order_v1.with_("reference.id", "order-123")
    handles = await asyncio.gather(*(single.start(stage.client, TEN) for _ in range(50)))
    assert len({handle.id for handle in handles}) == 1
    found = await order_v1.get_by_reference(stage.client, "order-123")
    assert (found.id, found.run.reference) == (handles[0].id, "order-123")


async def test_references_belong_to_a_version(stage: Replaying) -> None:
    first = await order_v1.with_("reference.id", "order-123").start(stage.client, TEN)
    second = await order_v2.with_("reference.id", "order-123").start(stage.client, Order(order_id="124"))
    assert first.id != second.id
    assert [(await version.get_by_reference(stage.client, "order-123")).id for version in (order_v1, order_v2)] == [
        first.id,
        second.id,
    ]


async def test_a_reference_that_no_run_has_is_not_found(stage: Replaying) -> None:
    await order_v1.start(stage.client, TEN)
    with pytest.raises(NotFound, match=r"^no run of order-processing 1\.0\.0 has this reference$"):
        await order_v1.get_by_reference(stage.client, "order-123")


@pytest.mark.parametrize("reference", ["", 5, "a\n"])
async def test_a_reference_that_no_run_can_have_is_refused(stage: Replaying, reference: Any) -> None:
    with pytest.raises(SettingsError, match=r"^order-processing 1\.0\.0: reference must be a str of 1 to 256 characters"):
        await order_v1.get_by_reference(stage.client, reference)


async def test_another_input_conflicts_and_names_the_run_that_has_the_reference(stage: Replaying) -> None:
    single = order_v1.with_("reference.id", "order-123")
    handle = await single.start(stage.client, TEN)
    with pytest.raises(ReferenceConflict) as conflict:
        await single.start(stage.client, Order(order_id="124"))
    assert conflict.value.fields["run_id"] == handle.id


async def test_a_start_that_finds_a_finished_run_has_its_end_at_once(stage: Replaying) -> None:
    single = order_v1.with_("reference", {"id": "order-123", "conflict_policy": "return_existing"})
    first = await single.start(stage.client, TEN)
    assert await stage.execute(first.id) == ["completed"]
    again = await single.start(stage.client, Order(order_id="124"))
    expected = Finished(first.id, Completed(Order(order_id="123", amount=5)))
    assert await again.wait(timeout=timedelta(microseconds=1)) == expected


async def test_a_run_is_found_by_its_id_under_its_own_version_only(stage: Replaying) -> None:
    run_id = (await order_v1.start(stage.client, TEN)).id
    await stage.execute(run_id)
    found = await order_v1.get(stage.client, run_id)
    assert (await found.wait()).value() == Order(order_id="123", amount=5)
    with pytest.raises(SettingsError, match=f"^run {run_id} is one of order-processing 1.0.0, not of order-processing 2.0.0$"):
        await order_v2.get(stage.client, run_id)


async def test_a_handle_is_refreshed_and_tells_the_history_of_its_run(stage: Replaying) -> None:
    handle = await order_v1.start(stage.client, TEN)
    await stage.execute(handle.id)
    known, refreshed = handle.run, await handle.refresh()
    assert (known.state, refreshed.state.status, handle.run) == (Queued(reason="new"), "completed", refreshed)
    entries = [entry async for entry in handle.history()]
    assert [record.state.status for record in (entry.record for entry in entries) if isinstance(record, Transition)] == [
        "queued",
        "running",
        "completed",
    ]
    assert isinstance(entries[0].record, InputRecord)


async def test_an_output_that_does_not_fit_fails_the_run_by_itself_and_is_not_tried_again(stage: Replaying) -> None:
    handle = await order_v1.start(stage.client, Order(order_id="123", amount=5))
    assert await stage.execute(handle.id) == ["failed"]
    ended = await handle.wait()
    assert isinstance(ended.state, Failed)
    assert (handle.run.attempts, ended.state.cause, ended.state.error.name, ended.state.error.message) == (
        1,
        SelfCause(),
        "InvalidValue",
        "order-processing: output as JSON does not fit Order: amount: Input should be greater than 0",
    )
