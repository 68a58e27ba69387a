"""Orders, and what can become of them. Every amount is in minor units (cents, yen, fils) of the order's currency."""

from decimal import Decimal
from pathlib import Path
from typing import Annotated, Literal, TypeAlias

from pydantic import BaseModel, Field, TypeAdapter

MAX_AMOUNT = 2**53 - 1
"""The largest whole number that every JSON parser reads exactly (RFC 8259, section 6)."""

Amount = Annotated[int, Field(ge=0, le=MAX_AMOUNT)]
OrderId = Annotated[str, Field(pattern=r"^[A-Za-z0-9-]{1,64}$")]
"""Also names the invoice's file, so nothing that means something in a path."""

Currency = Literal["EUR", "USD", "JPY", "KWD"]
Card = Literal["card-good", "card-declined", "card-busy-once"]
"""The test cards of our imaginary payment service."""


class Customer(BaseModel, frozen=True):
    """Who buys. Names are kept exactly as they were typed."""

    name: Annotated[str, Field(min_length=1, max_length=1_000)]
    email: str | None = None
    vat_id: str | None = None


class Address(BaseModel, frozen=True):
    """Where the goods go. `country` is an ISO 3166 code of two letters."""

    street: str
    city: str
    postcode: str | None = None
    country: Annotated[str, Field(pattern=r"^[A-Z]{2}$")]


class Line(BaseModel, frozen=True):
    """One article of an order."""

    sku: Annotated[str, Field(min_length=1, max_length=64)]
    description: Annotated[str, Field(max_length=2_000)] = ""
    quantity: Annotated[int, Field(ge=1, le=1_000_000)] = 1
    unit_price: Amount

    @property
    def amount(self) -> int:
        """May exceed MAX_AMOUNT."""
        return self.quantity * self.unit_price


class Order(BaseModel, frozen=True):
    """What came in from the shop: well-formed, but not yet checked. Without `ship_to` it is collected at the counter."""

    order_id: OrderId
    customer: Customer
    currency: Currency = "EUR"
    card: Card = "card-good"
    lines: list[Line] = []
    ship_to: Address | None = None
    note: Annotated[str, Field(max_length=10_000)] | None = None
    tags: list[str] = []

    @property
    def total(self) -> int:
        """May exceed MAX_AMOUNT; such an order is rejected."""
        return sum(line.amount for line in self.lines)


class Fulfilled(BaseModel, frozen=True):
    """Paid, invoiced and on its way; without `tracking` the customer collects it."""

    outcome: Literal["fulfilled"] = "fulfilled"
    order_id: OrderId
    total: Amount
    transaction: str
    invoice: str
    tracking: str | None


class Rejected(BaseModel, frozen=True):
    """Nothing was delivered and nothing charged, for these reasons."""

    outcome: Literal["rejected"] = "rejected"
    order_id: OrderId
    reasons: list[str]


class InReview(BaseModel, frozen=True):
    """So large that a person must decide; `ticket` is where."""

    outcome: Literal["in_review"] = "in_review"
    order_id: OrderId
    total: Amount
    ticket: str


Outcome: TypeAlias = Annotated[Fulfilled | Rejected | InReview, Field(discriminator="outcome")]

ORDERS_FILE = Path(__file__).with_name("orders.json")


def read_orders(file: Path = ORDERS_FILE) -> list[Order]:
    """The orders in a JSON file. Raises pydantic.ValidationError, naming each field at fault."""
    return TypeAdapter(list[Order]).validate_json(file.read_bytes())


_DECIMALS: dict[Currency, int] = {"EUR": 2, "USD": 2, "JPY": 0, "KWD": 3}


def money(amount: int, currency: Currency) -> str:
    """An amount for people: `money(123456, "EUR")` is `1,234.56 EUR`."""
    return f"{Decimal(amount).scaleb(-_DECIMALS[currency]):,f} {currency}"
