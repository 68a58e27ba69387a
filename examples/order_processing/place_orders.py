"""Starts a run for every order in a file and shows what became of them: `python -m examples.order_processing.place_orders`.

ORDERS_SERVER_URL: the server. An argument names another file than `orders.json`.
"""

import asyncio
import sys
from collections.abc import Sequence
from pathlib import Path

from aiki_push import Client, Handle
from aiki_push.errors import AikiError
from examples.order_processing.orders import ORDERS_FILE, Fulfilled, InReview, Order, Outcome, Rejected, money, read_orders
from examples.order_processing.settings import text
from examples.order_processing.workflow import order_v1


async def place_orders(client: Client, orders: Sequence[Order]) -> list[Handle[Outcome]]:
    """Start one run for each order, in their order."""
    return [await order_v1.start(client, order) for order in orders]


def summary(order: Order, outcome: Outcome) -> str:
    """One line for people."""
    match outcome:
        case Fulfilled(tracking=tracking):
            end = f"fulfilled  {money(outcome.total, order.currency)}, {tracking or 'to be collected'}"
        case Rejected(reasons=reasons):
            end = f"rejected   {'; '.join(reasons)}"
        case InReview(ticket=ticket):
            end = f"in review  {money(outcome.total, order.currency)}, {ticket}"
    return f"{order.order_id:<24.24} {end}"


async def main(file: Path) -> None:
    """Place the orders in `file`, wait for all of them, and print a line for each."""
    client, orders = Client(url=text("ORDERS_SERVER_URL")), read_orders(file)
    try:
        for order, handle in zip(orders, await place_orders(client, orders), strict=True):
            print(summary(order, (await handle.wait()).value()))
    finally:
        await client.close()


if __name__ == "__main__":
    try:
        asyncio.run(main(Path(sys.argv[1]) if len(sys.argv) > 1 else ORDERS_FILE))
    except (AikiError, OSError, ValueError) as error:
        sys.exit(f"place orders: {error}")
