import math
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
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    JsonValue,
    PrivateAttr,
    RootModel,
    computed_field,
    field_serializer,
    field_validator,
    model_serializer,
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


def refusal(hint: object, value: object) -> str:
    with pytest.raises(NotSerializable) as refused:
        declared(hint).round_trip(value, at=AT)
    return str(refused.value)


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


class Base(BaseModel):
    a: int = 1


class Sub(Base):
    b: int = 2


class Twin(BaseModel):
    a: int = 1


class Excluding(BaseModel):
    secret: int = Field(3, exclude=True)


class Required(BaseModel):
    a: int = Field(exclude=True)


class Renamed(BaseModel):
    a: int = Field(serialization_alias="X")


class Client: ...


class Private(BaseModel):
    _seen: int = PrivateAttr(0)


class Connected(BaseModel):
    _client: Client = PrivateAttr(default_factory=Client)


class Rounding(BaseModel):
    price: float

    @field_validator("price")
    @classmethod
    def two_digits(cls, price: float) -> float:
        return round(price, 2)


class Failing(BaseModel):
    a: int = 1

    @field_serializer("a")
    def serialize_a(self, a: int) -> int:
        raise LookupError(f"secret {a}")


class Emptied(BaseModel):
    a: int

    @model_serializer
    def nothing(self) -> dict[str, int]:
        return {}


class Loose(BaseModel):
    anything: Any


def seen() -> Private:
    model = Private()
    model._seen = 4
    return model


def inside_itself() -> list[Any]:
    cycle: list[Any] = []
    cycle.append({"again": cycle})
    return cycle


BROKEN = Base.model_construct(**{"a": "secret"})  # type: ignore[arg-type]  # on purpose

NOT_KEPT: list[tuple[object, object, str]] = [
    (Base, Sub(), " is Sub and came back from JSON as Base"),
    (Base | Twin, Twin(), " is Twin and came back from JSON as Base"),
    (list[Base | Twin], [Base(), Twin()], "[1] is Twin and came back from JSON as Base"),
    (str | Color, Color.RED, " is Color and came back from JSON as str"),
    (Excluding, Excluding(secret=5), ".secret came back from JSON as another int"),
    (Required, Required(a=5), " does not come back from its own JSON: a: Field required"),
    (Renamed, Renamed(a=5), " does not come back from its own JSON: a: Field required"),
    (Emptied, Emptied(a=5), " does not come back from its own JSON: a: Field required"),
    (Private, seen(), "._seen came back from JSON as another int"),
    (Connected, Connected(), "._client came back from JSON as another Client"),
    (Rounding, Rounding.model_construct(price=0.123), ".price came back from JSON as another float"),
    (Failing, Failing(), " is Failing, which cannot be dumped to JSON"),
    (list[Annotated[float, AfterValidator(lambda weight: weight + 1)]], [1], "[0] is int and came back from JSON as float"),
    (list[int], (1,), " is tuple and came back from JSON as list"),
    (list[int], [1, True], "[1] is bool and came back from JSON as int"),
    (list[str], [Color.RED], "[0] is Color and came back from JSON as str"),
    (list, (1,), " is tuple and came back from JSON as list"),
    (int, True, " is bool, but declared int"),
    (int, 1.0, " is float, but declared int"),
    (float, True, " is bool, but declared float"),
    (str, 1, " is int, but declared str"),
    (str, Color.RED, " is Color: use None, bool, int, float, str, list or dict"),
    (None, 0, " is int, but declared None"),
    (Base, 5, " does not fit Base: Input should be an object"),
    (Base, {"a": 5}, " is dict and came back from JSON as Base"),
    (Base | None, BROKEN, " does not fit Base | None: a: Input should be a valid integer"),
    (Literal["a"], "b", " does not come back from its own JSON: Input should be 'a'"),
    (Options, {}, " does not come back from its own JSON: name: Field required"),
    (Options, {"name": "n", "more": 1}, ".more did not come back from JSON"),
    (dict[str, int], {1: 2}, "[int key 1] did not come back from JSON"),
    (tuple[int, int], (1, 2, 3), " does not fit tuple[int, int]: Tuple should have at most 2 items after validation, not 3"),
    (list[int], [2**60], "[0] is an integer beyond ±2^53: use str"),
    (list[float], [1.0, math.nan], "[1] is nan"),
    (float, math.inf, " is inf"),
    (str, "\ud800", " holds half of a surrogate pair, which is not Unicode text"),
    (Any, (1,), " is tuple: use None, bool, int, float, str, list or dict"),
    (Any, {"a": [{1}]}, ".a[0] is set: use None, bool, int, float, str, list or dict"),
    (Loose, Loose(anything=[{"x": object()}]), ".anything[0].x is object, which cannot be dumped to JSON"),
    (Loose, Loose(anything=[b"\xff"]), ".anything[0] is bytes, which cannot be dumped to JSON"),
    (Loose, Loose(anything=b"a"), ".anything is bytes and came back from JSON as str"),
    (Loose, Loose(anything=Base()), ".anything is Base and came back from JSON as dict"),
    (Loose, Loose(anything={"x": (1,)}), ".anything.x is tuple and came back from JSON as list"),
    (Loose, Loose(anything={1: 2}), ".anything[int key 1] did not come back from JSON"),
    (Loose, Loose(anything={"a b": (1,)}), '.anything["a b"] is tuple and came back from JSON as list'),
    (Order, Order.model_validate({"orderId": "o", "note": (1,)}), ".note is tuple and came back from JSON as list"),
    (object, (1,), " is tuple: use None, bool, int, float, str, list or dict"),
    (list[Any], inside_itself(), " is inside more than 100 lists and dicts, or in itself"),
]


@pytest.mark.parametrize(("hint", "value", "sentence"), NOT_KEPT, ids=lambda value: str(value)[:30].replace("\ud800", "?"))
def test_a_value_that_would_come_back_changed_is_refused_by_its_place(hint: object, value: object, sentence: str) -> None:
    assert refusal(hint, value) == AT + sentence


def test_no_refusal_carries_the_value_along() -> None:
    for hint, value in ((Base, BROKEN), (Failing, Failing()), (Literal["a"], "secret")):
        with pytest.raises(NotSerializable) as refused:
            declared(hint).round_trip(value, at=AT)
        error: BaseException | None = refused.value
        while error is not None:
            assert "secret" not in str(error)
            error = error.__cause__ or error.__context__


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
