"""Invoices: one text file for each order, complete or not there at all."""

import re
from pathlib import Path
from tempfile import TemporaryDirectory

from examples.order_processing.orders import Order, money

_CONTROLS = re.compile(r"[\x00-\x1f\x7f-\x9f]")


def invoice_text(order: Order) -> str:
    """The same text for the same order, always. What customers typed stays on its own line, whatever it contains."""
    customer = order.customer
    head = [f"INVOICE {order.order_id}", f"Customer: {_one_line(customer.name)}"]
    if customer.vat_id:
        head.append(f"VAT id: {_one_line(customer.vat_id)}")
    body = [
        f"{number:>4}  {_one_line(line.sku)}  {_one_line(line.description) or '-'}"
        f"  {line.quantity:,} x {money(line.unit_price, order.currency)} = {money(line.amount, order.currency)}"
        for number, line in enumerate(order.lines, start=1)
    ]
    return "\n".join([*head, "", *body, "", f"TOTAL {money(order.total, order.currency)}", ""])


def write_invoice_file(folder: Path, order: Order) -> str:
    """Write the invoice and return its file's name in `folder`. Writing it again, even at the same time, changes nothing."""
    name = f"{order.order_id}.txt"
    folder.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(dir=folder, prefix=".") as drafts:
        draft = Path(drafts, name)
        draft.write_text(invoice_text(order), "utf-8", newline="\n")
        draft.replace(folder / name)
    return name


def _one_line(text: str) -> str:
    return " ".join(_CONTROLS.sub(" ", text).split())
