# mypy: ignore-errors
# pyright: strict
"""Mistakes with events, children, sleeps and other runs, each reported by both type checkers at the line that says so."""

from datetime import timedelta

from pydantic import BaseModel

from aiki_push import ChildHandle, Client, Handle, Run, TimedOut, event, task, workflow


class Order(BaseModel):
    order_id: str


class Payment(BaseModel):
    transaction_id: str


stopped = event("stopped")
paid = event("paid", Payment)
maybe_paid = event("maybe-paid", Payment | None)
ordered = event("ordered", list[Order])

PAYMENT = Payment(transaction_id="t-1")
ORDER = Order(order_id="123")
DAY = timedelta(days=1)

event("paid", "a text that is no type")  # error
event("paid", 5)  # error
event(Payment)  # error
event("paid", Payment, json="loose")  # error
paid.with_("reference", {"id": "t-1"})  # error
paid.with_("reference.id", 5)  # error
paid.with_("delay", DAY)  # error


@task("charge", expected_duration=120)  # error
async def charge(order: Order) -> str:
    return order.order_id


@workflow("shipment").v("1.0.0")
async def shipment_v1(run: Run, order: Order) -> int:
    return 1


@workflow("audit").v("1.0.0")
async def audit_v1(run: Run) -> str:
    return run.id


single = shipment_v1.with_("reference.id", "order-123")


async def events(run: Run, handle: Handle[int], maybe: timedelta | None) -> None:
    order: Order = (await paid.wait(run)).data  # error
    data: Payment = (await maybe_paid.wait(run)).data  # error
    print((await paid.wait(run, timeout=DAY)).data)  # error
    print((await paid.wait(run, timeout=maybe)).data)  # error
    payment: Payment = await paid.wait(run)  # error
    await paid.wait(run, DAY)  # error
    await paid.wait(run, timeout=5)  # error
    await paid.wait(handle)  # error
    await paid.wait()  # error
    print((await stopped.wait(run)).data.transaction_id)  # error
    if not isinstance(await paid.wait(run), TimedOut):
        print(order, data, payment)
    received = await paid.wait(run, timeout=DAY)
    if received:
        print(received.data)  # error


async def sends(client: Client, run: Run, handle: Handle[int], child: ChildHandle[int]) -> None:
    await paid.send(handle)  # error
    await paid.send(handle, ORDER)  # error
    await paid.send(handle, {"transaction_id": "t-1"})  # error
    await paid.send(handle, None)  # error
    await paid.send(handle, PAYMENT, PAYMENT)  # error
    await paid.send(child, ORDER)  # error
    await paid.send(run, PAYMENT)  # error
    await paid.send(handle.id, PAYMENT)  # error
    await paid.send(shipment_v1.referenced("order-123"), PAYMENT)  # error
    await stopped.send(handle, PAYMENT)  # error
    await ordered.send(handle, [PAYMENT])  # error
    await ordered.send(run.peer(handle.id), ORDER)  # error
    await paid.multicast(client, [handle])  # error
    await paid.multicast(client, [handle], ORDER)  # error
    await paid.multicast(client, handle, PAYMENT)  # error
    await paid.multicast(client, [child], PAYMENT)  # error
    await paid.multicast([handle], PAYMENT)  # error
    await stopped.multicast(client, [handle], "now")  # error
    shipment_v1.referenced(123)  # error
    single.referenced("order-123")  # error


async def children(run: Run, client: Client) -> None:
    await shipment_v1.start_as_child(run)  # error
    await shipment_v1.start_as_child(run, PAYMENT)  # error
    await shipment_v1.start_as_child(run, "123")  # error
    await shipment_v1.start_as_child(client, ORDER)  # error
    await audit_v1.start_as_child(run, ORDER)  # error
    await single.start_as_child(run)  # error
    await single.start_as_child(run, PAYMENT)  # error
    child = await shipment_v1.start_as_child(run, ORDER)
    output: str = (await child.wait()).value()  # error
    (await child.wait(timeout=DAY)).value()  # error
    await child.wait(timeout=5)  # error
    await child.wait(DAY)  # error
    print(output, (await child.wait()).state.output)  # error
    await child.cancel(5)  # error
    await child.wakeup(DAY)  # error
    await child.refresh()  # error
    handle: Handle[int] = child  # error
    print(handle)


async def runs(run: Run, handle: Handle[int]) -> None:
    await run.sleep(DAY)  # error
    await run.sleep("cooling-off", 5)  # error
    await run.sleep("cooling-off")  # error
    slept: bool = await run.sleep("cooling-off", DAY)  # error
    stamp: float = run.now()  # error
    text: str = run.uuid()  # error
    print(slept, stamp, text)
    run.peer(5)  # error
    await run.peer(handle.id).wait()  # error
    await run.peer(handle.id).cancel(explanation=True)  # error
    await handle.cancel(5)  # error
    await handle.wakeup(5)  # error
