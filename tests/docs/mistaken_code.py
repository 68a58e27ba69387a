"""Code with the mistakes of `docs/mistakes.md` in it."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from typing import Annotated, Any

from pydantic import BaseModel, Field

from aiki_push import Client, Run, endpoint, run_blocking, task, task_info, workflow
from tests.integration.replays import Replaying


@dataclass(frozen=True)
class Recorded:
    """What a run failed with."""

    error: str
    message: str


Mistake = Callable[[], object]
"""Raises; or gives an awaitable that does; or one that gives what the run failed with."""


class Order(BaseModel):
    order_id: str
    amount: Annotated[int, Field(gt=0)]


class Rush(Order):
    by: str = "noon"


ORDER = Order(order_id="123", amount=5)


@workflow("orders").v("1.0.0")
async def order_v1(run: Run, order: Order) -> Order:
    return order


@workflow("orders").v("2.0.0")
async def order_v2(run: Run, order: Any) -> Any:
    return order


v1: Any = order_v1
v2: Any = order_v2
untyped_ship: Any = task("ship")(lambda: None)
client: Any = Client(url="http://127.0.0.1:9850")
"""As code without type hints uses them."""


def defined(handler: Any, **options: Any) -> object:
    return workflow("orders").v("1.0.0", **options)(handler)


def task_of(handler: Any, **options: Any) -> object:
    return task("ship", **options)(handler)


def served(*given: Any) -> object:
    return endpoint(workflows=given, client=client, insecure=True)


def defined_twice() -> None:
    orders = workflow("orders")
    for _ in range(2):

        @orders.v("1.0.0")
        async def order(run: Run) -> None: ...


def plain_handler(run: Run, order: Order) -> None: ...


async def no_run() -> None: ...


def two_inputs(order: Order, customer: str) -> None: ...


def a_default(order: str = "none") -> None: ...


def a_keyword(*, order: Order) -> None: ...


def no_input() -> None: ...


async def a_run(run: Run) -> None: ...


async def unknown_name(run: Run, order: "Ordr") -> None: ...  # type: ignore[name-defined]  # noqa: F821 - the mistake


def started(version: Any, *given: Any) -> Awaitable[Any]:
    handle: Awaitable[Any] = version.start(Replaying(order_v1).client, *given)
    return handle


async def failed(version: Any, *given: Any) -> Recorded:
    stage = Replaying(version)
    handle = await version.start(stage.client, *given)
    await stage.execute(handle.id)
    error = (await handle.refresh()).error
    return Recorded(error.name, error.message)


async def another_input() -> None:
    stage, single = Replaying(order_v1), order_v1.with_("reference.id", "order-123")
    await single.start(stage.client, ORDER)
    await single.start(stage.client, Order(order_id="123", amount=6))


async def another_version() -> None:
    stage = Replaying(order_v1)
    await order_v2.get(stage.client, (await order_v1.start(stage.client, ORDER)).id)


async def timeout_in_seconds() -> None:
    await (await started(v1, ORDER)).wait(timeout=5)


async def blocking_itself() -> None:
    run_blocking(no_run())


class Colour(Enum):
    RED = 1


class Clock: ...


class Stamped(BaseModel):
    lines: list[dict[str, datetime]]


def ship_gives(output: object) -> Mistake:
    return lambda: task_of(no_input, output=output)


@task("ship")
def ship(order: Order) -> Order:
    if order.order_id == "unknown":
        raise LookupError("there is no such order")
    return Rush(order_id=order.order_id, amount=order.amount)


def doing(body: Callable[[Run], Awaitable[Any]]) -> Mistake:
    """A run of the workflow `orders`, whose handler does this."""

    @workflow("orders").v("1.0.0", output=Order)
    async def orders(run: Run) -> Any:
        return await body(run)

    return lambda: failed(orders)


async def asks_for_task_info(run: Run) -> str:
    return task_info().idempotency_key


async def opens_a_connection(run: Run) -> None:
    await asyncio.open_connection("example.com", 443)


async def uses_a_thread(run: Run) -> None:
    await asyncio.to_thread(len, "abc")


async def blocks(run: Run) -> None:
    run_blocking(no_run())


async def waits_for_nothing(run: Run) -> None:
    await asyncio.Event().wait()


async def gives_something_else(run: Run) -> dict[str, str]:
    return {"order_id": "123", "amount": "5"}


async def names_the_input(run: Run) -> None:
    untyped: Any = ship
    await untyped.start(run, order=ORDER)


async def value_of_a_failed_run() -> None:
    @workflow("orders").v("1.0.0")
    async def orders(run: Run) -> str:
        raise LookupError("there is no such order")

    stage = Replaying(orders)
    handle = await orders.start(stage.client)
    await stage.execute(handle.id)
    (await handle.wait()).value()
