from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal
from enum import IntEnum, StrEnum
from functools import cached_property
from typing import Annotated, Any, Generic, Literal, NamedTuple, NotRequired, TypeVar
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    JsonValue,
    PrivateAttr,
    RootModel,
    computed_field,
)
from typing_extensions import TypedDict

from aiki_push.domain.errors import NotSerializable
from aiki_push.domain.values import Json
from aiki_push.sdk.types.hints import UNTYPED, Hint
from aiki_push.sdk.types.json_type import JsonType

T = TypeVar("T")
AT = "fetch-order: output"


def declared(hint: object, json: Literal["strict", "typed"] = "strict") -> JsonType[Any]:
    return JsonType(Hint(hint), at=AT, json=json)


class Color(StrEnum):
    RED = "red"


class Size(IntEnum):
    BIG = 1


class Line(BaseModel):
    count: int
    color: Color = Color.RED


class Order(BaseModel):
    model_config = ConfigDict(extra="allow")
    order_id: str = Field(alias="orderId")
    lines: list[Line] = []
    next: "Order | None" = None


class ByValidationAlias(BaseModel):
    order_id: str = Field(validation_alias="orderId")


class Strict(BaseModel):
    model_config = ConfigDict(extra="forbid")
    width: int

    @computed_field  # type: ignore[prop-decorator]  # as pydantic documents it
    @property
    def doubled(self) -> int:
        return self.width * 2


class Lazy(BaseModel):
    width: int
    _seen: list[int] = PrivateAttr(default_factory=list)

    @cached_property
    def area(self) -> int:
        return self.width**2


def looked_at() -> Lazy:
    model = Lazy(width=2)
    assert model.area == 4
    return model


@dataclass(slots=True, kw_only=True)
class Item(Generic[T]):
    value: T
    checked: bool = field(default=False, compare=False)


class Place(NamedTuple):
    x: int
    color: Color = Color.RED


class Options(TypedDict):
    name: str
    items: NotRequired[list[Item[int]]]


ORDER = Order.model_validate({"orderId": "o", "lines": [{"count": 1}], "next": {"orderId": "p"}, "note": "extra"})

KEPT: list[tuple[object, Any, Json]] = [
    (str, "é", "é"),
    (int, 2**53, 2**53),
    (float, -0.0, -0.0),
    (float | int, 1, 1),
    (int | float, 1.0, 1.0),
    (bool, True, True),
    (None, None, None),
    (Any, {"a": [1, 2.0, None, True]}, {"a": [1, 2.0, None, True]}),
    (list, [1, "a"], [1, "a"]),
    (dict[Color, int], {Color.RED: 1}, {"red": 1}),
    (Color, Color.RED, "red"),
    (Size, Size.BIG, 1),
    (str | Size, Size.BIG, 1),
    (Literal["a", 1, True, None], True, True),
    (Literal[Color.RED], Color.RED, "red"),
    (tuple[int, Color], (1, Color.RED), [1, "red"]),
    (Place, Place(1), [1, "red"]),
    (Item[Place], Item(value=Place(1)), {"value": [1, "red"], "checked": False}),
    (Options, {"name": "n"}, {"name": "n"}),
    (Options, {"name": "n", "items": [Item(value=1)]}, {"name": "n", "items": [{"value": 1, "checked": False}]}),
    (list[Line | None], [Line(count=1), None], [{"count": 1, "color": "red"}, None]),
    (
        Order,
        ORDER,
        {
            "orderId": "o",
            "lines": [{"count": 1, "color": "red"}],
            "next": {"orderId": "p", "lines": [], "next": None},
            "note": "extra",
        },
    ),
    (RootModel[list[Line]], RootModel[list[Line]]([Line(count=1)]), [{"count": 1, "color": "red"}]),
    (ByValidationAlias, ByValidationAlias(orderId="o"), {"order_id": "o"}),
    (Strict, Strict(width=1), {"width": 1}),
    (JsonValue, {"a": [1]}, {"a": [1]}),
    (Lazy, looked_at(), {"width": 2}),
]


def same(one: object, other: object) -> bool:
    """Equal, of one type, and with -0.0 told from 0.0."""
    return type(one) is type(other) and one == other and repr(one) == repr(other)


@pytest.mark.parametrize(("hint", "value", "encoded"), KEPT, ids=lambda value: str(value)[:30])
def test_a_value_comes_back_equal_and_of_the_same_type_at_first_and_on_every_replay(
    hint: object, value: Any, encoded: Json
) -> None:
    kept = declared(hint)
    stored, first = kept.round_trip(value, at=AT)
    assert same(stored, encoded)
    assert same(first, value)
    assert same(kept.encode(value, at=AT), encoded)
    assert all(same(kept.decode(stored, at=AT), value) for _replay in range(5))


def test_a_field_that_does_not_count_when_two_are_compared_need_not_come_back() -> None:
    @dataclass
    class Counted:
        count: int
        note: Annotated[str, Field(exclude=True)] = field(default="", compare=False)

    assert declared(Counted).round_trip(Counted(1, "lost"), at=AT) == ({"count": 1}, Counted(1))


@pytest.mark.parametrize("json", ["strict", "typed"])
def test_an_int_where_a_float_is_declared_becomes_a_float(json: Literal["strict", "typed"]) -> None:
    class Scale(BaseModel):
        weight: float = 0  # pydantic does not validate defaults

    assert same(declared(float, json).round_trip(1, at=AT), (1.0, 1.0))
    assert same(declared(list[float], json).round_trip([1], at=AT), ([1.0], [1.0]))
    assert declared(Scale, json).round_trip(Scale(), at=AT) == ({"weight": 0.0}, Scale(weight=0.0))


def test_what_comes_back_shares_nothing_with_what_was_given() -> None:
    nested: dict[str, list[int]] = {"a": [1]}
    _, untyped = JsonType[Any](UNTYPED, at=AT).round_trip(nested, at=AT)
    _, typed = declared(dict[str, list[int]]).round_trip(nested, at=AT)
    nested["a"].append(2)
    assert untyped == typed == {"a": [1]}


def test_the_typed_rule_restores_what_pydantic_can() -> None:
    class Receipt(BaseModel):
        at: datetime
        id: UUID
        total: Decimal

    receipt = Receipt(at=datetime(2024, 1, 2, tzinfo=UTC), id=UUID(int=1), total=Decimal("1.10"))
    assert declared(Receipt, "typed").round_trip(receipt, at=AT) == (
        {"at": "2024-01-02T00:00:00Z", "id": "00000000-0000-0000-0000-000000000001", "total": "1.10"},
        receipt,
    )


class Loose(BaseModel):
    anything: Any


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


@given(JSON)
def test_every_json_value_comes_back_exactly_declared_or_not(value: Json) -> None:
    for hint in (Any, JsonValue, Loose):
        wrapped: Any = Loose(anything=value) if hint is Loose else value
        assert same(declared(hint).round_trip(wrapped, at=AT)[1], wrapped)


@given(JSON)
def test_any_value_is_kept_or_refused_and_never_anything_else(value: Json) -> None:
    for hint in (int, float, list[int], dict[str, float], Line, Options, Line | Place | None):
        kept = declared(hint)
        try:
            encoded, returned = kept.round_trip(value, at=AT)
        except NotSerializable:
            continue
        assert same(returned, value) or hint in (float, dict[str, float])
        assert returned == encoded == value
