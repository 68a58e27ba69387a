"""Order processing: from an order to goods on their way, in steps that outlive the process that runs them."""

import asyncio

from aiki_push import Run, workflow
from examples.order_processing.orders import Fulfilled, InReview, Order, Outcome, Rejected
from examples.order_processing.tasks import (
    Charge,
    Confirmation,
    Declined,
    book_shipment,
    charge_payment,
    open_review,
    release_stock,
    reserve_stock,
    send_confirmation,
    validate_order,
    write_invoice,
)

REVIEW_ABOVE = 1_000_000
"""An order with a larger total, in minor units of any currency, is decided by a person."""

order_processing = workflow("order-processing")


@order_processing.v("1.0.0")
async def order_v1(run: Run, order: Order) -> Outcome:
    """What became of the order. A rejected order is a result like any other: the run completes."""
    faults = await validate_order.start(run, order)
    if faults:
        return Rejected(order_id=order.order_id, reasons=faults)
    if order.total > REVIEW_ABOVE:
        ticket = await open_review.start(run, order)
        return InReview(order_id=order.order_id, total=order.total, ticket=ticket)

    await reserve_stock.start(run, order)
    payment = await charge_payment.start(
        run, Charge(order_id=order.order_id, card=order.card, amount=order.total, currency=order.currency)
    )
    if isinstance(payment, Declined):
        await release_stock.start(run, order.order_id)
        return Rejected(order_id=order.order_id, reasons=[payment.reason])

    invoice, tracking = await asyncio.gather(write_invoice.start(run, order), book_shipment.start(run, order))
    await send_confirmation.start(run, Confirmation(order_id=order.order_id, email=order.customer.email, tracking=tracking))
    return Fulfilled(
        order_id=order.order_id, total=order.total, transaction=payment.transaction, invoice=invoice, tracking=tracking
    )
