"""The steps of an order. Each touches the world outside, so each is a task: its result is recorded and never computed again.

A plain function runs in a thread and may block; an `async def` runs on the event loop and must not.
"""

import asyncio
from contextlib import AbstractContextManager
from time import sleep  # noqa: TID251 - real work takes real time, and this only pretends to be some
from typing import Annotated, Literal, TypeAlias

from pydantic import BaseModel, Field

from aiki_push import exponential, task, task_info
from examples.order_processing.invoices import write_invoice_file
from examples.order_processing.ledger import Ledger
from examples.order_processing.orders import MAX_AMOUNT, Amount, Card, Currency, Order, OrderId, money
from examples.order_processing.settings import invoices_folder, ledger_file, work_s

PATIENT = exponential(max_attempts=4, base_delay_ms=100)


class Charge(BaseModel, frozen=True):
    """All that the payment service needs to know."""

    order_id: OrderId
    card: Card
    amount: Amount
    currency: Currency


class Paid(BaseModel, frozen=True):
    """The money is ours."""

    result: Literal["paid"] = "paid"
    transaction: str


class Declined(BaseModel, frozen=True):
    """The bank said no. That is an answer and no error, so it is not tried again."""

    result: Literal["declined"] = "declined"
    reason: str


Payment: TypeAlias = Annotated[Paid | Declined, Field(discriminator="result")]


class Confirmation(BaseModel, frozen=True):
    """What the customer is told, by letter if there is no `email`."""

    order_id: OrderId
    email: str | None
    tracking: str | None


class ServiceBusy(Exception):
    """The service did nothing this time. Asking again may help."""


@task("validate-order")
def validate_order(order: Order) -> list[str]:
    """What is wrong with the order; as a rule, nothing."""
    with effect(order.order_id):
        sleep(work_s())
        faults: list[str] = []
        if not order.lines:
            faults.append("the order has no lines")
        if order.total > MAX_AMOUNT:
            faults.append(f"the total of {money(order.total, order.currency)} is more than can be charged")
        return faults


@task("open-review")
def open_review(order: Order) -> str:
    """The ticket on which a person decides about the order."""
    with effect(order.order_id):
        sleep(work_s())
        return f"review-{order.order_id}"


@task("reserve-stock", retry=PATIENT)
def reserve_stock(order: Order) -> int:
    """How many articles were put aside."""
    with effect(order.order_id):
        sleep(work_s())
        return sum(line.quantity for line in order.lines)


@task("release-stock", retry=PATIENT)
def release_stock(order_id: str) -> None:
    """Puts the reserved articles back."""
    with effect(order_id):
        sleep(work_s())


@task("charge-payment", retry=PATIENT)
async def charge_payment(charge: Charge) -> Payment:
    """Charges the card. The key is the same however often this is executed: by it the service knows a charge that it has made."""
    info = task_info()
    with effect(charge.order_id):
        await asyncio.sleep(work_s())
        if charge.card == "card-busy-once" and info.attempt == 1:
            raise ServiceBusy("the card network is busy")
        if charge.card == "card-declined":
            return Declined(reason="the card was declined")
        return Paid(transaction=f"payment-{info.idempotency_key}")


@task("write-invoice")
def write_invoice(order: Order) -> str:
    """The name of the invoice's file."""
    with effect(order.order_id):
        sleep(work_s())
        return write_invoice_file(invoices_folder(), order)


@task("book-shipment", retry=PATIENT)
async def book_shipment(order: Order) -> str | None:
    """The parcel's tracking number; None for an order that is collected."""
    with effect(order.order_id):
        await asyncio.sleep(work_s())
        return f"parcel-{order.order_id}" if order.ship_to else None


@task("send-confirmation", retry=PATIENT)
async def send_confirmation(confirmation: Confirmation) -> Literal["email", "letter"]:
    """How the customer was told."""
    with effect(confirmation.order_id):
        await asyncio.sleep(work_s())
        return "email" if confirmation.email else "letter"


def effect(order_id: str) -> AbstractContextManager[None]:
    """Keeps the running task's effect in the ledger: a row before it and a row after it."""
    return Ledger(ledger_file()).effect(task_info(), order_id)
