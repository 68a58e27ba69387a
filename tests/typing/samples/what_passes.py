# mypy: ignore-errors
# pyright: strict
"""What authors write: neither type checker says a word."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, NamedTuple, assert_type

from pydantic import BaseModel
from typing_extensions import TypedDict

from aiki_push import (
    AnyWorkflowVersion,
    Cancelled,
    Client,
    Completed,
    Duration,
    Failed,
    Finished,
    Handle,
    Run,
    RunInfo,
    SingleStart,
    Task,
    TimedOut,
    WorkflowVersion,
    endpoint,
    exponential,
    fixed,
    never,
    run_blocking,
    task,
    task_info,
    workflow,
)


class Order(BaseModel):
    order_id: str
    amount: int


@dataclass(frozen=True)
class Line:
    article: str


class Place(NamedTuple):
    x: int
    y: int


class Customer(TypedDict):
    name: str


@task("reserve-stock", retry=exponential(max_attempts=5, base_delay_ms=500))
async def reserve_stock(order: Order) -> str:
    return f"{task_info().idempotency_key} {order.order_id}"


@task("ship", interrupted="fail", json="typed")
def ship(order: Order) -> Line:
    task_info().logger.info("shipping")
    return Line(order.order_id)


@task("tick")
async def tick() -> None:
    await asyncio.sleep(0)


@task("tock", output=int)
def tock() -> int:
    return 1


@task("locate", input=Customer, output=Place | None)
def locate(customer: Customer) -> Place | None:
    return Place(1, 2) if customer["name"] else None


orders = workflow("order-processing")


@orders.v("1.0.0", retry=exponential(max_attempts=3, base_delay_ms=5_000), pool="tenant-acme", priority=2)
async def order_v1(run: Run, order: Order) -> str:
    run.logger.info("an order of %s", order.amount, extra={"more": 1})
    settings: dict[str, str] = run.context
    assert_type(await reserve_stock.start(run, order), str)
    assert_type(await ship.start(run, order), Line)
    assert_type(await tick.start(run), None)
    assert_type(await tock.with_("retry", fixed(max_attempts=2, delay_ms=10)).start(run), int)
    assert_type(await locate.start(run, {"name": settings["name"]}), Place | None)
    first, second = await asyncio.gather(reserve_stock.start(run, order), tock.start(run))
    return first * second


@orders.v("2.0.0", input=list[Order], output=Customer | None, json="typed")
async def order_v2(run: Run, order: list[Order]) -> Customer | None:
    return {"name": run.id} if order else None


@workflow("nightly").v("1.0.0")
async def nightly(run: Run) -> int:
    return run.attempt


assert_type(order_v1, WorkflowVersion[[Order], str])
assert_type(nightly, WorkflowVersion[[], int])
assert_type(reserve_stock, Task[[Order], str])
assert_type(tick, Task[[], None])

assert_type(order_v1.with_("retry", never()), WorkflowVersion[[Order], str])
assert_type(order_v1.with_("pool", "tenant-acme"), WorkflowVersion[[Order], str])
assert_type(order_v1.with_("priority", 0), WorkflowVersion[[Order], str])
assert_type(order_v1.with_("delay", timedelta(seconds=30)), SingleStart[[Order], str])
assert_type(order_v1.with_("delay", Duration(hours=1, minutes=30)), SingleStart[[Order], str])
assert_type(order_v1.with_("reference.id", "order-123"), SingleStart[[Order], str])
assert_type(order_v1.with_("reference", {"id": "order-123"}), SingleStart[[Order], str])
assert_type(order_v1.with_("reference", {"id": "order-123", "conflict_policy": "return_existing"}), SingleStart[[Order], str])
assert_type(
    order_v1.with_("reference.conflict_policy", "error")
    .with_("reference.id", "order-123")
    .with_("reference", {"id": "order-124"})
    .with_("delay", timedelta(seconds=30))
    .with_("priority", 9)
    .with_("pool", "tenant-acme")
    .with_("retry", never()),
    SingleStart[[Order], str],
)


async def context(run: RunInfo) -> dict[str, str]:
    return {"name": run.workflow}


def plain_context(run: RunInfo) -> str:
    return run.id


client = Client(url="http://127.0.0.1:9850", context=context)
other = Client(url="http://127.0.0.1:9850", context=plain_context)

served: list[AnyWorkflowVersion] = [order_v1, order_v2, nightly]
also_served: Sequence[AnyWorkflowVersion] = (order_v1.with_("pool", "tenant-acme"), nightly)
endpoint(workflows=[order_v1, order_v2, nightly], client=client, insecure=True)
endpoint(workflows=served, client=client, insecure=True)
endpoint(workflows=also_served, client=other, insecure=True)


async def start() -> str:
    handle = await order_v1.with_("reference.id", "order-123").start(client, Order(order_id="123", amount=5))
    assert_type(handle, Handle[str])
    assert_type(await nightly.start(client), Handle[int])
    assert_type(await order_v1.get(client, handle.id), Handle[str])
    assert_type(await order_v1.get_by_reference(client, "order-123"), Handle[str])
    assert_type(await handle.wait(), Finished[str])
    result = await handle.wait(timeout=timedelta(minutes=5))
    assert_type(result, Finished[str] | TimedOut)
    if isinstance(result, TimedOut):
        return "timed out"
    assert_type(result.value(), str)
    match result.state:
        case Completed(output=output):
            return assert_type(output, str)
        case Failed(error=error):
            return error.message
        case Cancelled(explanation=explanation):
            return explanation or "cancelled"


def script() -> str:
    handle = run_blocking(order_v1.start(client, Order(order_id="123", amount=5)))
    assert_type(handle, Handle[str])
    return run_blocking(handle.wait(), timeout=timedelta(minutes=5)).value()


def any_handle(handle: Handle[object]) -> Any:
    return handle.run.state.status


async def covariant() -> None:
    any_handle(await order_v1.start(client, Order(order_id="123", amount=5)))
