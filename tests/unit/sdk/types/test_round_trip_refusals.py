import math
from enum import StrEnum
from typing import Annotated, Any, Literal, TypeVar

import pytest
from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    PrivateAttr,
    field_serializer,
    field_validator,
    model_serializer,
)
from typing_extensions import TypedDict

from aiki_push.domain.errors import NotSerializable
from aiki_push.sdk.types.hints import Hint
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


class Order(BaseModel):
    model_config = ConfigDict(extra="allow")
    order_id: str = Field(alias="orderId")


class Options(TypedDict):
    name: str


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
    (Required, Required(a=5), " as JSON does not fit Required: a: Field required"),
    (Renamed, Renamed(a=5), " as JSON does not fit Renamed: a: Field required"),
    (Emptied, Emptied(a=5), " as JSON does not fit Emptied: a: Field required"),
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
    (Literal["a"], "b", " as JSON does not fit Literal['a']: Input should be 'a'"),
    (Options, {}, " as JSON does not fit Options: name: Field required"),
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
