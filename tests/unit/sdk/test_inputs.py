"""Inputs that are refused: to the caller, before anything is sent, with each field at fault."""

from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple

import pytest
from pydantic import BaseModel, Field, field_validator
from typing_extensions import TypedDict

from aiki_push import Run, WorkflowVersion, workflow
from aiki_push.domain.errors import NotSerializable, PayloadTooLarge
from aiki_push.errors import InvalidValue
from aiki_push.sdk.types.restoring import Problem
from tests.unit.sdk.recording_api import RecordingApi


class Line(BaseModel):
    article: Annotated[str, Field(min_length=1)]
    amount: Annotated[int, Field(gt=0)]


class Order(BaseModel):
    order_id: str
    lines: list[Line]

    @field_validator("order_id")
    @classmethod
    def known(cls, order_id: str) -> str:
        if order_id == "unknown":
            raise ValueError("there is no such order")
        return order_id


@dataclass
class Customer:
    name: str
    age: Annotated[int, Field(ge=18)]


class Address(TypedDict):
    street: str
    number: Annotated[int, Field(gt=0)]


class Place(NamedTuple):
    x: int
    y: int


def broken(model: type[BaseModel], **fields: Any) -> BaseModel:
    """A model that nothing has validated."""
    return model.model_construct(**fields)


def version_of(input_type: Any) -> WorkflowVersion[[Any], None]:
    @workflow("orders").v("1.0.0", input=input_type)
    async def orders(run: Run, given: Any) -> None: ...

    return orders


INT = "Input should be a valid integer"
STR = "Input should be a valid string"
POSITIVE = "Input should be greater than 0"
WRONG: list[tuple[Any, Any, str, list[Problem]]] = [
    (
        Order,
        broken(Order, order_id=5, lines=[broken(Line, article="a", amount="b")]),
        "orders: input does not fit Order: order_id: Input should be a valid string; lines[0].amount: " + INT,
        [Problem("order_id", STR), Problem("lines[0].amount", INT)],
    ),
    (
        Order,
        broken(Order, order_id="unknown", lines=[broken(Line, article="", amount=0)]),
        "orders: input as JSON does not fit Order: order_id: Value error, there is no such order; "
        "lines[0].article: String should have at least 1 character; lines[0].amount: Input should be greater than 0",
        [
            Problem("order_id", "Value error, there is no such order"),
            Problem("lines[0].article", "String should have at least 1 character"),
            Problem("lines[0].amount", POSITIVE),
        ],
    ),
    (
        Order,
        {"lines": [{"article": "a"}]},
        "orders: input does not fit Order: order_id: Field required; lines[0].amount: Field required",
        [Problem("order_id", "Field required"), Problem("lines[0].amount", "Field required")],
    ),
    (
        Customer,
        Customer(name=5, age=17),  # type: ignore[arg-type]  # what is looked at
        "orders: input does not fit Customer: name: Input should be a valid string; age: Input should be greater than or equal to 18",
        [Problem("name", STR), Problem("age", "Input should be greater than or equal to 18")],
    ),
    (
        Address,
        {"street": "s", "number": 0},
        "orders: input as JSON does not fit Address: number: Input should be greater than 0",
        [Problem("number", POSITIVE)],
    ),
    (
        Place,
        ("a", "b"),
        f"orders: input does not fit Place: [0]: {INT}; [1]: {INT}",
        [Problem("[0]", INT), Problem("[1]", INT)],
    ),
    (
        list[int],
        [str(number) for number in range(30)],
        "orders: input does not fit list[int]: " + "; ".join(f"[{number}]: {INT}" for number in range(20)) + "; and 10 more",
        [Problem(f"[{number}]", INT) for number in range(30)],
    ),
]


@pytest.mark.parametrize(("declared", "given", "sentence", "problems"), WRONG)
async def test_an_input_that_does_not_fit_is_refused_with_each_field_at_fault_and_nothing_is_sent(
    declared: Any, given: Any, sentence: str, problems: list[Problem]
) -> None:
    api = RecordingApi()
    with pytest.raises(InvalidValue) as refused:
        await version_of(declared).start(api.client(), given)
    assert (str(refused.value), list(refused.value.problems), api.called) == (sentence, problems, [])


@pytest.mark.parametrize(
    ("declared", "given", "sentence"),
    [
        (Any, {"items": [1, {2}]}, "orders: input.items[1] is set: use None, bool, int, float, str, list or dict"),
        (dict[str, float], {"a": float("nan")}, "orders: input.a is nan"),
        (int, 2**53 + 1, "orders: input is an integer beyond ±2^53: use str"),
        (Order, {"order_id": "a", "lines": []}, "orders: input is dict and came back from JSON as Order"),
        (str, 5, "orders: input is int, but declared str"),
    ],
)
async def test_an_input_that_is_no_json_or_of_another_type_is_refused_by_its_place(
    declared: Any, given: Any, sentence: str
) -> None:
    api = RecordingApi()
    with pytest.raises(NotSerializable) as refused:
        await version_of(declared).start(api.client(), given)
    assert (str(refused.value), api.called) == (sentence, [])


async def test_an_input_that_is_too_large_is_refused_before_it_is_sent() -> None:
    api = RecordingApi()
    with pytest.raises(PayloadTooLarge) as refused:
        await version_of(str).start(api.client(), "a" * 262_143)
    assert (str(refused.value), api.called) == ("orders: input has 262145 bytes of JSON; the limit is 262144", [])


async def test_an_input_too_few_too_many_or_by_keyword_is_a_type_error() -> None:
    api = RecordingApi()
    start: Any = version_of(str).start
    with pytest.raises(TypeError, match="^orders: missing a required argument: 'given'$"):
        await start(api.client())
    with pytest.raises(TypeError, match="^orders: too many positional arguments$"):
        await start(api.client(), "a", "b")
    with pytest.raises(TypeError, match="^orders: the input is given by position$"):
        await start(api.client(), given="a")
    assert api.called == []
