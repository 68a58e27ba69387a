"""A workflow, the histories of its runs, and ways to change its code."""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

from pydantic import BaseModel

from aiki_push import Run, WorkflowVersion, task, workflow
from aiki_push.domain.log_records import AnyRecord
from aiki_push.testing import Harness

MONTH_S = 30 * 86_400

called: list[str] = []


class Order(BaseModel):
    order_id: str


@task("reserve")
async def reserve(order: Order) -> str:
    called.append("reserve")
    return f"reserved {order.order_id}"


@task("ship")
async def ship(order: Order) -> str:
    called.append("ship")
    return f"shipped {order.order_id}"


@task("charge")
async def charge(order: Order) -> str:
    called.append("charge")
    raise ValueError("no money")


Body = Callable[[Run, Order], Coroutine[Any, Any, str]]


def order_version(body: Body) -> WorkflowVersion[[Order], str]:
    @workflow("order").v("1.0.0")
    async def order_v1(run: Run, order: Order) -> str:
        return await body(run, order)

    return order_v1


async def reserve_wait_ship(run: Run, order: Order) -> str:
    await reserve.start(run, order)
    await asyncio.sleep(MONTH_S)
    return await ship.start(run, order)


async def charge_only(run: Run, order: Order) -> str:
    return await charge.start(run, order)


ORIGINAL = order_version(reserve_wait_ship)


def history_of(version: WorkflowVersion[[Order], Any], *, days: int) -> Sequence[AnyRecord]:
    """What a run of `version` has done after so many days."""
    with Harness(version) as harness:

        async def scenario() -> str:
            handle = await version.start(harness.client, Order(order_id="7"))
            await asyncio.sleep(days * 86_400)
            return handle.id

        return harness.records(harness.run(scenario()))
