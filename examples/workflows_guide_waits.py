"""The guide goes on: sleeps, events and children. Each part of it is a piece of code that a test runs."""

import asyncio
from datetime import timedelta

from pydantic import BaseModel

from aiki_push import ChildHandle, Client, Completed, Finished, Handle, Run, TimedOut, event, workflow
from aiki_push.errors import ChildFailed, ReferenceConflict
from examples.workflows_guide import Order, Receipt, User, create_user_profile, onboarding_v1, order_v1, orders

# Sleeps: the run is parked, and costs nothing. Whoever has its handle may wake it up.


@orders.v("2.0.0")
async def order_with_cooling_off(run: Run, order: Order) -> str:
    slept = await run.sleep("cooling-off", timedelta(days=14))
    return f"{order.order_id} is shipped {'early' if slept.woken_early else 'in time'}"


async def ship_now(handle: Handle[str]) -> None:
    await handle.wakeup("cooling-off")


# Events: what a run waits for and somebody else sends.


class Payment(BaseModel):
    """What is paid."""

    transaction_id: str


payment_received = event("payment-received", Payment)


@orders.v("2.1.0")
async def order_with_payment(run: Run, order: Order) -> str:
    paid = await payment_received.wait(run, timeout=timedelta(days=3))
    if isinstance(paid, TimedOut):
        return f"{order.order_id} expired"
    return f"{order.order_id} is paid by {paid.data.transaction_id}"


async def pay(handle: Handle[str], transaction_id: str) -> bool:
    once = payment_received.with_("reference.id", transaction_id)
    return await once.send(handle, Payment(transaction_id=transaction_id))


async def pay_by_reference(client: Client, order_id: str) -> bool:
    target = order_with_payment.referenced(order_id)
    (sent,) = await payment_received.multicast(client, [target], Payment(transaction_id="t-2"))
    return sent.delivered


# Controlling a run.


async def control(handle: Handle[str]) -> list[str]:
    runs = [await handle.pause(), await handle.resume(), await handle.cancel("User requested cancellation")]
    return [run.state.status for run in runs]


# Children: started and forgotten, the parent goes on.

parents = workflow("parent")


@parents.v("1.0.0")
async def fire_and_forget(run: Run, user: User) -> None:
    await onboarding_v1.start_as_child(run, user)
    await create_user_profile.start(run, user)


# Waiting for a child: it resolves when the child has ended, in whatever way.


@parents.v("2.0.0")
async def wait_for_the_child(run: Run, order: Order) -> str:
    child = await order_v1.start_as_child(run, order)
    end = await child.wait()
    match end.state:
        case Completed(output=receipt):
            return f"child output: {receipt.order_id}"
        case other:
            raise RuntimeError(f"Child ended {other.status}")


@parents.v("2.1.0")
async def wait_for_an_hour(run: Run, order: Order) -> str:
    child = await order_with_cooling_off.start_as_child(run, order)
    end = await child.wait(timeout=timedelta(hours=1))
    if isinstance(end, TimedOut):
        await child.cancel("it took too long")
        return f"the child is {(await child.wait()).state.status}"
    return end.value()


# Children in parallel: all are started, then all are waited for.


@parents.v("3.0.0")
async def in_parallel(run: Run, items: list[Order]) -> list[str]:
    children = await asyncio.gather(*(order_v1.start_as_child(run, order) for order in items))
    ends = await asyncio.gather(*(child.wait() for child in children))
    return [end.value().order_id for end in ends]


@parents.v("3.1.0")
async def as_a_group(run: Run, order: Order) -> str:
    """A child that fails takes the group with it, and is the cause of the run's failure."""
    async with asyncio.TaskGroup() as group:
        receipt = group.create_task(receipt_of(await order_v1.start_as_child(run, order)))
        expired = group.create_task(text_of(await order_with_payment.start_as_child(run, order)))
    return f"{receipt.result().order_id} is processed, {expired.result()}"


async def receipt_of(child: ChildHandle[Receipt]) -> Receipt:
    return (await child.wait()).value()


async def text_of(child: ChildHandle[str]) -> str:
    try:
        return (await child.wait()).value()
    except ChildFailed as failed:
        return f"{failed.status}: {failed.run_id}"


# References of children: however often it is started, it is one run.


@parents.v("4.0.0")
async def with_a_reference(run: Run, order: Order) -> bool:
    single = order_v1.with_("reference.id", f"process-order-{order.order_id}")
    first, second = await single.start_as_child(run, order), await single.start_as_child(run, order)
    return first.id == second.id


# Conflict policies: another input under one reference is an error, or gives the run that exists.


@parents.v("4.1.0")
async def with_another_input(run: Run, order: Order) -> Receipt:
    single, other = order_v1.with_("reference.id", "unique-id"), Order(order_id="another", amount=1)
    await single.start_as_child(run, order)
    try:
        child = await single.start_as_child(run, other)
    except ReferenceConflict:
        existing = order_v1.with_("reference", {"id": "unique-id", "conflict_policy": "return_existing"})
        child = await existing.start_as_child(run, other)
    end: Finished[Receipt] = await child.wait()
    return end.value()
