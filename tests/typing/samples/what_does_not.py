# mypy: ignore-errors
# pyright: strict
"""Mistakes that both type checkers report, each at the line that says so."""

from datetime import timedelta

from pydantic import BaseModel

from aiki_push import AnyWorkflowVersion, Client, Run, RunInfo, TimedOut, endpoint, run_blocking, task, workflow


class Order(BaseModel):
    order_id: str
    amount: int


@task("reserve-stock")
async def reserve_stock(order: Order) -> str:
    return order.order_id


@task("tick")
def tick() -> None:
    return None


orders = workflow("order-processing")


@orders.v("1.0.0")
async def order_v1(run: Run, order: Order) -> str:
    await reserve_stock.start(run)  # error
    await reserve_stock.start(run, "123")  # error
    await reserve_stock.start(order)  # error
    await tick.start(run, order)  # error
    amount: int = await reserve_stock.start(run, order)  # error
    reserve_stock.with_("pool", "tenant-acme")  # error
    reserve_stock.with_("retry", 3)  # error
    run.loger.info("a line")  # error
    return amount  # error


@orders.v("1.1.0")  # error
def plain_function(run: Run, order: Order) -> str:
    return order.order_id


@orders.v("1.2.0")  # error
async def no_run(order: Order) -> str:
    return order.order_id


@orders.v("1.3.0")  # error
async def two_inputs(run: Run, order: Order, more: Order) -> str:
    return order.order_id + more.order_id + run.id


@task("two-inputs")  # error
async def task_of_two(order: Order, more: Order) -> str:
    return order.order_id + more.order_id


@task("reserve", retry=3)  # error
def retried(order: Order) -> str:
    return order.order_id


@task("reserve", interrupted="never")  # error
def interrupted(order: Order) -> str:
    return order.order_id


@orders.v("1.4.0", priority=10)  # error
async def urgent(run: Run) -> str:
    return run.id


@orders.v("1.5.0", json="loose")  # error
async def loose(run: Run) -> str:
    return run.id


order_v1.with_("reference.di", "order-123")  # error
order_v1.with_("reference.id", 123)  # error
order_v1.with_("reference", "order-123")  # error
order_v1.with_("reference", {"conflict_policy": "error"})  # error
order_v1.with_("reference", {"id": "order-123", "conflict_policy": "replace"})  # error
order_v1.with_("reference.conflict_policy", "replace")  # error
order_v1.with_("delay", 30)  # error
order_v1.with_("delay", {"seconds": 30})  # error
order_v1.with_("pool", None)  # error
order_v1.with_("priority", 10)  # error
order_v1.with_("priority", "high")  # error
order_v1.with_("retry", {"type": "never"})  # error
order_v1.with_("reference.id", "order-123").with_("reference.di", "order-123")  # error

client = Client(url="http://127.0.0.1:9850")
one_off = order_v1.with_("reference.id", "order-123")
endpoint(workflows=[one_off], client=client, insecure=True)  # error
endpoint(workflows=[order_v1, order_v1.with_("delay", timedelta(seconds=30))], client=client, insecure=True)  # error
endpoint(workflows=[orders], client=client, insecure=True)  # error
endpoint(workflows=order_v1, client=client, insecure=True)  # error
version: AnyWorkflowVersion = one_off  # error
one_off.get(client, "01M8MER5BZSFP81HXYFC8VWCSD")  # error


def context(run: Run) -> str:
    return run.id


def no_context(run: RunInfo, more: str) -> str:
    return run.id + more


Client(url="http://127.0.0.1:9850", context=context)  # error
Client(url="http://127.0.0.1:9850", context=no_context)  # error


async def start() -> None:
    await order_v1.start(client)  # error
    await order_v1.start(client, "123")  # error
    await order_v1.start(client, {"order_id": "123", "amount": 5})  # error
    await order_v1.start("client", Order(order_id="123", amount=5))  # error
    await one_off.start(client, 123)  # error
    handle = await order_v1.start(client, Order(order_id="123", amount=5))
    await handle.wait(timeout=5)  # error
    finished = await handle.wait()
    amount: int = finished.value()  # error
    print(finished.state.output)  # error
    (await handle.wait(timeout=timedelta(minutes=5))).value()  # error
    if isinstance(await handle.wait(), TimedOut):
        print(amount)
    run_blocking(handle)  # error
    text: str = run_blocking(handle.wait())  # error
    print(text)
