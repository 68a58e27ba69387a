from dataclasses import dataclass, field
from enum import StrEnum
from typing import Annotated, Any, Generic, Literal, NamedTuple, TypeVar

import pytest
from pydantic import BaseModel, Discriminator, Field, computed_field
from typing_extensions import TypedDict

from aiki_push.domain.canonical_json import input_hash
from aiki_push.domain.errors import NotSerializable
from aiki_push.domain.values import Json
from aiki_push.sdk.types.hints import UNTYPED, Hint
from aiki_push.sdk.types.json_type import JsonType

T = TypeVar("T")


def key(hint: object, value: object) -> Json:
    return JsonType[Any](Hint(hint), at="ship: input").key_value(value)


class Color(StrEnum):
    RED = "red"


class Address(BaseModel):
    city: str


class NewAddress(BaseModel):
    """`Address` after fields with defaults of every kind were added."""

    city: str
    zip: str | None = None
    tags: list[str] = Field(default_factory=list)
    color: Color = Field(Color.RED, alias="paintedIn")
    rate: float = 0
    home: Address = Address(city="Bonn")

    @computed_field  # type: ignore[prop-decorator]  # as pydantic documents it
    @property
    def label(self) -> str:
        return self.city.upper()


@dataclass
class Parcel(Generic[T]):
    to: T


@dataclass
class NewParcel(Generic[T]):
    to: T
    notes: dict[str, int] = field(default_factory=dict)
    fragile: bool = False


class Order(BaseModel, Generic[T]):
    item: T


class NewOrder(BaseModel, Generic[T]):
    item: T
    count: Annotated[int, Field(ge=1)] = 1


class Stop(NamedTuple, Generic[T]):
    place: T
    order: int = 0


class Route(TypedDict, Generic[T]):
    by_name: dict[str, T]


OLD, NEW = Address(city="Ulm"), NewAddress(city="Ulm")

ORDER = Order[Parcel[Address]](item=Parcel(OLD))
NEW_ORDER = NewOrder[NewParcel[NewAddress]](item=NewParcel(NEW))

GROWN: list[tuple[object, object, object, object, Json]] = [
    (Address, OLD, NewAddress, NEW, {"city": "Ulm"}),
    (list[Address], [OLD], list[NewAddress], [NEW], [{"city": "Ulm"}]),
    (dict[str, Address | None], {"a": OLD}, dict[str, NewAddress | None], {"a": NEW}, {"a": {"city": "Ulm"}}),
    (Parcel[Address], Parcel(OLD), NewParcel[NewAddress], NewParcel(NEW), {"to": {"city": "Ulm"}}),
    (Order[Parcel[Address]], ORDER, NewOrder[NewParcel[NewAddress]], NEW_ORDER, {"item": {"to": {"city": "Ulm"}}}),
    (tuple[Address, int], (OLD, 0), tuple[NewAddress, int], (NEW, 0), [{"city": "Ulm"}, 0]),
    (Stop[Address], Stop(OLD), Stop[NewAddress], Stop(NEW), [{"city": "Ulm"}, 0]),
    (Route[Address], {"by_name": {"a": OLD}}, Route[NewAddress], {"by_name": {"a": NEW}}, {"by_name": {"a": {"city": "Ulm"}}}),
    (Address | str, OLD, NewAddress | str, NEW, {"city": "Ulm"}),
    (Address | Parcel[int], OLD, NewAddress | NewParcel[int], NEW, {"city": "Ulm"}),
]


@pytest.mark.parametrize(("old", "old_value", "new", "new_value", "expected"), GROWN, ids=lambda value: str(value)[:25])
def test_adding_fields_with_defaults_at_any_depth_changes_no_key(
    old: object, old_value: object, new: object, new_value: object, expected: Json
) -> None:
    assert key(old, old_value) == key(new, new_value) == expected
    assert input_hash(key(new, new_value)) == input_hash(expected)


def test_a_field_that_is_not_its_default_counts_by_its_alias() -> None:
    changed = NewAddress(city="Ulm", zip="1", tags=["x"], paintedIn=Color.RED, rate=0.5, home=Address(city="Ulm"))
    assert key(NewAddress, changed) == {"city": "Ulm", "zip": "1", "tags": ["x"], "rate": 0.5, "home": {"city": "Ulm"}}
    assert key(NewParcel[int], NewParcel(0, {"a": 0}, True)) == {"to": 0, "notes": {"a": 0}, "fragile": True}


def test_the_stored_value_keeps_its_defaults() -> None:
    stored = JsonType(NewOrder[int], at="ship: input").encode(NewOrder[int](item=1), at="ship: input")
    assert stored == {"item": 1, "count": 1}


def test_a_value_without_fields_is_its_own_key() -> None:
    untyped = JsonType[Any](UNTYPED, at="ship: input")
    assert untyped.key_value({"a": [None, 0, ""]}) == {"a": [None, 0, ""]}
    assert (key(str, ""), key(float, 1), key(None, None), key(Color, Color.RED)) == ("", 1.0, None, "red")


class Email(BaseModel):
    kind: Literal["email"] = "email"
    to: str


class Sms(BaseModel):
    kind: Literal["sms"] = "sms"
    to: str
    urgent: bool = False


@dataclass
class Post:
    to: str
    kind: Literal["post"] = "post"


def test_members_of_a_union_that_differ_only_in_their_tags_have_different_keys() -> None:
    messages = (Email(to="x"), Sms(to="x"), Post(to="x"))
    for union in (Email | Sms | Post, Annotated[Email | Sms | Post, Discriminator("kind")]):
        assert [key(union, message) for message in messages] == [
            {"to": "x"},
            [{"to": "x"}, {".kind": "sms"}],
            [{"to": "x"}, {".kind": "post"}],
        ]
        assert key(list[union], [messages[1], messages[0]]) == [[{"to": "x"}, {"to": "x"}], {"[0].kind": "sms"}]  # type: ignore[valid-type]  # a type in a variable
        assert key(list[union], [messages[0], messages[1]]) == [[{"to": "x"}, {"to": "x"}], {"[1].kind": "sms"}]  # type: ignore[valid-type]  # a type in a variable


def test_adding_members_to_the_end_of_a_union_changes_no_key() -> None:
    assert key(Email, Email(to="x")) == key(Email | Sms, Email(to="x")) == {"to": "x"}
    assert key(Email | Sms, Sms(to="x")) == key(Email | Sms | Post, Sms(to="x"))


def test_a_value_not_of_the_declared_type_has_no_key() -> None:
    with pytest.raises(NotSerializable, match=r"^value does not fit Email: Input should be an object"):
        key(Email, 5)
