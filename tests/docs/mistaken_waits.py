"""Code with the mistakes of `docs/mistakes.md` about events, children, sleeps and other runs in it."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta
from typing import Any

from pydantic import BaseModel

from aiki_push import Client, Failed, Run, event, task, workflow
from aiki_push.domain.log_records import Transition
from aiki_push.domain.run_states import Stalled
from aiki_push.testing import Harness, LocalSystem
from tests.docs.mistaken_code import ORDER, Mistake, Order, Recorded

HOUR = timedelta(hours=1)
RUN_ID = "01M8MER5BZSFP81HXYFC8VWCSD"

Body = Callable[[Run], Awaitable[Any]]
Act = Callable[[Any], Awaitable[Any]]


class Payment(BaseModel):
    transaction_id: str


PAYMENT = Payment(transaction_id="t-1")
WRONG_PAYMENT = Payment.model_construct(transaction_id=5)  # type: ignore[arg-type]  # the mistake
paid: Any = event("paid", Payment)
stopped: Any = event("stopped")
another_paid: Any = event("paid", str)
a_minute: Any = 60
"""As code without type hints uses them."""


@task("ship")
async def ship(order: Order) -> str:
    return order.order_id


@workflow("parcels").v("1.0.0")
async def parcels(run: Run, order: Order) -> str:
    if order.order_id == "unknown":
        raise LookupError("there is no such order")
    await run.sleep("packing", HOUR)
    return order.order_id


@workflow("parcels").v("1.0.0")
async def other_parcels(run: Run, order: Order) -> int:
    return order.amount


untyped_parcels: Any = parcels
single: Any = parcels.with_("reference.id", "order-123")


def run_of(body: Body, act: Act | None = None) -> Recorded:
    """What a run of the workflow `orders` with this body failed or stalled with, after `act` was done to it as it waited."""

    @workflow("orders").v("1.0.0", output=object)
    async def orders(run: Run) -> Any:
        return await body(run)

    async def scenario() -> Recorded:
        handle = await orders.start(harness.client)
        await harness.settle()
        if act is not None:
            await act(handle)
        await asyncio.sleep(10_000)
        state = (await handle.refresh()).state
        if isinstance(state, Stalled):
            told = [record for record in harness.records(handle.id) if isinstance(record, Transition)]
            return Recorded(state.reason, told[-1].explanation or "")
        ended = await handle.wait()
        if isinstance(ended.state, Failed):
            return Recorded(ended.state.error.name, ended.state.error.message)
        return Recorded("completed", str(ended.value()))

    with Harness(orders, parcels) as harness:
        return harness.run(scenario())


def doing(body: Body, act: Act | None = None) -> Mistake:
    return lambda: run_of(body, act)


def to_run(call: Act) -> Mistake:
    """The error of a call with the handle of a run that waits."""

    async def waits(run: Run) -> None:
        await stopped.wait(run)

    return doing(waits, call)


async def data_of_a_timeout(run: Run) -> Any:
    return (await paid.wait(run, timeout=HOUR)).data


async def waits_for_coroutines(run: Run) -> None:
    waits = [paid.wait(run), stopped.wait(run)]
    try:
        await asyncio.wait(waits)
    finally:
        for wait in waits:
            wait.close()


async def completes_coroutines(run: Run) -> None:
    waits = [paid.wait(run), stopped.wait(run)]
    try:
        for first in asyncio.as_completed(waits):
            await first
    finally:
        for wait in waits:
            wait.close()


async def value_of_a_failed_child(run: Run) -> str:
    child = await parcels.start_as_child(run, Order(order_id="unknown", amount=1))
    return (await child.wait()).value()


async def child_with_another_input(run: Run) -> None:
    await single.start_as_child(run, ORDER)
    await single.start_as_child(run, Order(order_id="124", amount=5))


async def child_for_five_seconds(run: Run) -> None:
    child: Any = await parcels.start_as_child(run, ORDER)
    await child.wait(timeout=5)


async def a_client_in_a_workflow(run: Run) -> None:
    client = Client(server=LocalSystem().server)
    await parcels.start(client, ORDER)


async def wakes_nobody(run: Run) -> None:
    child = await parcels.start_as_child(run, ORDER)
    await run.sleep("moment", timedelta(minutes=1))
    await child.wakeup("lunch")


async def asks_the_machine_for_the_time(run: Run) -> None:
    now = datetime.now().isoformat()  # noqa: DTZ005, TID251 - the mistake
    await ship.start(run, Order(order_id=now, amount=1))
    await run.sleep("rest", HOUR)
    await ship.start(run, Order(order_id="later", amount=1))


async def waits_for_payment(run: Run) -> Any:
    return (await paid.wait(run)).data


async def output_of_changed_child(run: Run) -> int:
    child = await other_parcels.start_as_child(run, ORDER)
    return (await child.wait()).value()


async def catches_timeout_error(run: Run) -> str:
    try:
        return str(await paid.wait(run, timeout=HOUR))
    except TimeoutError:
        return "nobody paid"


async def asks_whether_it_is_true(run: Run) -> str:
    if not await paid.wait(run, timeout=HOUR):
        return "nobody paid"
    return "paid"


async def receives_two(run: Run) -> str:
    first, second = await paid.wait(run), await paid.wait(run)
    return f"{first.data.transaction_id}, {second.data.transaction_id}"


async def leaves_the_loser_alone(run: Run) -> str:
    early = asyncio.create_task(paid.wait(run))
    await asyncio.wait([early], timeout=60)
    late = await paid.wait(run, timeout=HOUR)
    return f"{early.done()}, {late}"


async def sends_twice(handle: Any) -> None:
    await paid.send(handle, PAYMENT)
    await paid.send(handle, PAYMENT)


async def pays_after_a_while(handle: Any) -> None:
    await asyncio.sleep(120)
    await paid.send(handle, PAYMENT)
