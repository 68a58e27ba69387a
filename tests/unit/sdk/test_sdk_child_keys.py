"""By what a child is found again when the code of its parent has changed."""

import asyncio
from datetime import timedelta

import pytest
from pydantic import BaseModel

from aiki_push import Run, WorkflowVersion, workflow
from aiki_push.domain.log_records import CallEnded
from aiki_push.domain.run_states import Stalled
from aiki_push.testing import Harness

HOUR = timedelta(hours=1)


class Order(BaseModel):
    order_id: str
    amount: int = 5


@workflow("shipment").v("1.0.0")
async def shipment(run: Run, order: Order) -> None: ...


def shipping(*orders: Order, single: bool = False) -> WorkflowVersion[[], list[str]]:
    """A workflow that starts a child for each order, with one reference each or none, rests, and says which they were."""

    @workflow("shipping").v("1.0.0")
    async def ships(run: Run) -> list[str]:
        started: dict[str, str] = {}
        for order in orders:
            named = shipment.with_("reference", {"id": order.order_id, "conflict_policy": "return_existing"})
            child = await (named if single else shipment).start_as_child(run, order)
            started[order.order_id] = child.id
        await run.sleep("rest", HOUR)
        return [started[order_id] for order_id in sorted(started)]

    return ships


A, B, C = (Order(order_id=order_id) for order_id in "abc")
MORE_OF_A = Order(order_id="a", amount=6)


@pytest.mark.parametrize(
    ("before", "after", "fits"),
    [
        (shipping(A, B), shipping(B, A), True),
        (shipping(A, B), shipping(A, C), False),
        (shipping(A), shipping(MORE_OF_A), False),
        (shipping(A, single=True), shipping(MORE_OF_A, single=True), True),
        (shipping(A, single=True), shipping(B, single=True), False),
    ],
)
def test_changed_code_finds_its_children_by_their_references_or_else_by_their_inputs(
    before: WorkflowVersion[[], list[str]], after: WorkflowVersion[[], list[str]], *, fits: bool
) -> None:
    async def scenario() -> None:
        handle = await before.start(harness.client)
        await harness.settle()
        started = [record.run_id for record in harness.records(handle.id) if isinstance(record, CallEnded)]
        harness.add(after)
        if fits:
            assert (await handle.wait()).value() == started
        else:
            await asyncio.sleep(3_600)
            await harness.settle()
            assert (await handle.refresh()).state == Stalled(reason="diverged")

    with Harness(before, shipment) as harness:
        harness.run(scenario())
