"""What is refused of a child: by a sentence that names place and fix."""

from datetime import timedelta
from typing import Any

import pytest
from pydantic import BaseModel

from aiki_push import Failed, Run, workflow
from tests.unit.sdk.bodies import Body, end_of, refusal_of


class Order(BaseModel):
    order_id: str
    amount: int = 5


@workflow("shipment").v("1.0.0")
async def shipment(run: Run, order: Order) -> None: ...


untyped: Any = shipment
ORDER = Order(order_id="123")

NOT_AN_ORDER = Order.model_construct(order_id=5, amount="5")  # type: ignore[arg-type]  # what is looked at


@pytest.mark.parametrize(
    ("start", "error", "sentence"),
    [
        (
            lambda run: untyped.start_as_child(run, NOT_AN_ORDER),
            "InvalidValue",
            "shipment: input does not fit Order: order_id: Input should be a valid string; amount: Input should be a valid integer",
        ),
        (
            lambda run: untyped.start_as_child(run, {"order_id": "123"}),
            "NotSerializable",
            "shipment: input is dict and came back from JSON as Order",
        ),
        (
            lambda run: untyped.start_as_child(run, Order(order_id="a" * 300_000)),
            "PayloadTooLarge",
            "shipment: input has 300026 bytes of JSON; the limit is 262144",
        ),
        (lambda run: untyped.start_as_child(run), "TypeError", "shipment: missing a required argument: 'order'"),
        (lambda run: untyped.start_as_child(run, ORDER, ORDER), "TypeError", "shipment: too many positional arguments"),
        (lambda run: untyped.start_as_child(run, order=ORDER), "TypeError", "shipment: the input is given by position"),
        (
            lambda run: untyped.with_("reference.conflict_policy", "error").start_as_child(run, ORDER),
            "SettingsError",
            "shipment 1.0.0: reference.conflict_policy says what a second start with one reference.id gets: set reference.id too",
        ),
    ],
)
def test_what_cannot_be_started_is_refused_before_anything_is_recorded(start: Body, error: str, sentence: str) -> None:
    assert refusal_of(start) == (error, sentence)


@pytest.mark.parametrize(
    ("timeout", "sentence"),
    [
        (5, "shipment: timeout must be a timedelta, not int"),
        (timedelta(0), "shipment: timeout must be longer than zero"),
        (timedelta(days=-1), "shipment: timeout must be longer than zero"),
        (timedelta(days=3_651), "shipment: timeout must not be longer than ten years (3650 days)"),
    ],
)
def test_a_timeout_that_is_no_length_of_time_is_refused_by_the_childs_workflow(timeout: Any, sentence: str) -> None:
    async def body(run: Run) -> Any:
        child: Any = await shipment.start_as_child(run, ORDER)
        await child.wait(timeout=timeout)

    ended = end_of(body, shipment)
    assert isinstance(ended.state, Failed)
    assert (ended.state.error.name, ended.state.error.message) == ("SettingsError", sentence)
