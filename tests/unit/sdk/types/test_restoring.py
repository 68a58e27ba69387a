from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Any, Literal, NamedTuple

import pytest
from pydantic import BaseModel, Field, field_validator
from typing_extensions import TypedDict

from aiki_push.domain.values import Json
from aiki_push.sdk.types.hints import Hint
from aiki_push.sdk.types.json_type import JsonType
from aiki_push.sdk.types.restoring import CannotRestore, Problem

AT = "order-processing: input"


class Color(StrEnum):
    RED = "red"


class Line(BaseModel):
    count: int
    color: Color = Color.RED


class Counted(BaseModel):
    count: int


class Order(BaseModel):
    order_id: str = Field(alias="orderId")
    lines: list[Line] = []


class Cat(BaseModel):
    kind: Literal["cat"] = "cat"
    lives: int


class Dog(BaseModel):
    kind: Literal["dog"] = "dog"


class Checked(BaseModel):
    amount: int

    @field_validator("amount")
    @classmethod
    def is_sound(cls, amount: int) -> int:
        if amount < 0:
            raise ValueError("must not be negative")
        if amount == 0:
            raise KeyError(amount)
        return amount


@dataclass
class Pair:
    left: int
    right: int


class Place(NamedTuple):
    x: int
    y: int


class Options(TypedDict):
    name: str


def restore(hint: object, value: Json) -> Any:
    return JsonType[Any](Hint(hint), at=AT).decode(value, at=AT)


MISFITS: list[tuple[object, Json, list[Problem]]] = [
    (int, "5", [Problem("", "Input should be int, not str")]),
    (int, True, [Problem("", "Input should be int, not bool")]),
    (bool, 1, [Problem("", "Input should be bool, not int")]),
    (None, 0, [Problem("", "Input should be None, not int")]),
    (list[int], ["5", 1, True, 1.0], [Problem(f"[{at}]", "Input should be a valid integer") for at in (0, 2, 3)]),
    (Color, "blue", [Problem("", "Input should be 'red'")]),
    (Order, [], [Problem("", "Input should be an object")]),
    (
        Order,
        {"lines": [{"count": 1}, {"count": "1"}, {}]},
        [
            Problem("orderId", "Field required"),
            Problem("lines[1].count", "Input should be a valid integer"),
            Problem("lines[2].count", "Field required"),
        ],
    ),
    (
        Cat | Pair,
        {"lives": "9", "left": 1},
        [Problem("lives", "Input should be a valid integer"), Problem("right", "Field required")],
    ),
    (
        dict[str, Line | None],
        {"a b": {}, "c": 3},
        [Problem("a b.count", "Field required"), Problem("c", "Input should be an object")],
    ),
    (
        Line | Cat,
        {"count": 1, "color": 5, "lives": 5, "kind": 1},
        [Problem("color", "Input should be 'red'"), Problem("kind", "Input should be 'cat'")],
    ),
    (Line | Counted, {"count": "1"}, [Problem("count", "Input should be a valid integer")]),
    (int | str, [], [Problem("", "Input should be a valid integer"), Problem("", "Input should be a valid string")]),
    (Annotated[Cat | Dog, Field(discriminator="kind")], {"kind": "secret"}, [Problem("", "Input has none of the expected tags")]),
    (
        Annotated[Cat | Dog, Field(discriminator="kind")],
        {"kind": "cat", "lives": ""},
        [Problem("lives", "Input should be a valid integer")],
    ),
    (Checked, {"amount": -1}, [Problem("amount", "Value error, must not be negative")]),
    (Checked, {"amount": 0}, [Problem("", "a validator raised KeyError")]),
    (Options, {"name": 1}, [Problem("name", "Input should be a valid string")]),
    (Place, [1, "2"], [Problem("[1]", "Input should be a valid integer")]),
]


@pytest.mark.parametrize(("hint", "value", "problems"), MISFITS, ids=lambda value: str(value)[:30])
def test_a_value_that_does_not_fit_is_refused_with_every_place_at_fault(
    hint: object, value: Json, problems: list[Problem]
) -> None:
    with pytest.raises(CannotRestore) as refused:
        restore(hint, value)
    assert list(refused.value.problems) == problems


def test_the_message_names_the_value_the_type_and_the_first_twenty_problems() -> None:
    with pytest.raises(CannotRestore) as few:
        restore(Line | None, {"count": "1"})
    with pytest.raises(CannotRestore) as many:
        restore(dict[str, str], {key: 1 for key in "abcdefghijklmnopqrstuv"})
    assert str(few.value) == "order-processing: input does not fit Line | None: count: Input should be a valid integer"
    listed = "; ".join(f"{key}: Input should be a valid string" for key in "abcdefghijklmnopqrst")
    assert str(many.value) == f"order-processing: input does not fit dict[str, str]: {listed}; and 2 more"


def test_no_message_shows_the_value() -> None:
    for hint in (int, Order, list[int], Cat | Dog, Annotated[Cat | Dog, Field(discriminator="kind")], Color, Place, Checked):
        values: list[Json] = ["secret", {"kind": "secret", "lines": ["secret"], "amount": "secret"}, ["secret", "secret"]]
        for value in values:
            with pytest.raises(CannotRestore) as refused:
                restore(hint, value)
            error: BaseException | None = refused.value
            while error is not None:
                assert "secret" not in str(error)
                error = error.__cause__ or error.__context__


def test_a_value_is_restored_by_alias_and_by_name() -> None:
    assert restore(Order, {"orderId": "o"}) == restore(Order, {"order_id": "o"}) == Order(orderId="o")


def test_a_recorded_value_without_a_field_that_was_added_later_gets_its_default() -> None:
    assert restore(list[Line], [{"count": 1}]) == [Line(count=1, color=Color.RED)]
