"""The hints of handlers in a module with postponed annotations, where every hint is text."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, TypedDict

import pytest
import typing_extensions
from pydantic import BaseModel

from aiki_push.domain.errors import NotSerializable, SettingsError
from aiki_push.sdk.types.hints import Hint, handler_types
from aiki_push.sdk.types.json_type import JsonType

if TYPE_CHECKING:
    from datetime import datetime

    from aiki_push.sdk.types.json_type import JsonType as Run


class Order(BaseModel):
    order_id: str


def test_hints_of_a_module_are_found_although_the_run_is_imported_for_type_checkers_only() -> None:
    async def order_v1(run: Run[int], order: Order | None) -> list[Order]:
        return [order] if order and run else []

    types = handler_types(order_v1, drop_first=True, localns=globals())
    assert types.input is not None
    assert (types.input.resolve(), types.output.resolve()) == (Order | None, list[Order])


def test_an_input_imported_for_type_checkers_only_is_refused_at_first_use() -> None:
    async def when(at: datetime) -> None:
        del at

    types = handler_types(when, drop_first=False, localns=globals())
    declared: JsonType[object] = JsonType(types.input or Hint(None), at="when: input")
    with pytest.raises(SettingsError) as refused:
        declared.check()
    assert str(refused.value) == (
        "when: input uses the name datetime, which does not exist: define or import it where the type is declared, "
        "not only for type checkers"
    )


def test_classes_made_inside_a_function_are_found_at_any_depth() -> None:
    @dataclass
    class Line:
        count: int
        next: Line | None = None

    class Basket(NamedTuple):
        lines: list[Line]

    class Parcel(typing_extensions.TypedDict):
        basket: Basket

    class Shipment(BaseModel):
        parcel: Parcel

    async def ship(shipment: Shipment) -> list[Shipment]:
        return [shipment]

    types = handler_types(ship, drop_first=False, localns=sys._getframe().f_locals)
    declared: JsonType[list[Shipment]] = JsonType(types.output, at="ship: output")
    given = [Shipment(parcel={"basket": Basket([Line(1, Line(2))])})]
    encoded, returned = declared.round_trip(given, at="ship: output")
    assert encoded == [{"parcel": {"basket": [[{"count": 1, "next": {"count": 2, "next": None}}]]}}]
    assert returned == given


def test_a_dataclass_made_inside_a_function_finds_the_names_around_it() -> None:
    @dataclass
    class Inner:
        count: int

    @dataclass
    class Outer:
        inner: Inner

    declared: JsonType[Outer] = JsonType(Hint(Outer, locals()), at="ship: input")
    assert declared.round_trip(Outer(Inner(1)), at="ship: input") == ({"inner": {"count": 1}}, Outer(Inner(1)))


def test_a_model_made_inside_a_function_finds_the_names_that_came_later() -> None:
    class Outer(BaseModel):
        inner: Inner

    class Inner(BaseModel):
        count: int

    declared: JsonType[Outer] = JsonType(Hint(Outer, locals()), at="ship: input")
    assert declared.decode({"inner": {"count": 1}}, at="ship: input") == Outer(inner=Inner(count=1))


def test_a_forbidden_type_inside_classes_made_in_a_function_is_named() -> None:
    class Moment(typing_extensions.TypedDict):
        placed: Placed

    @dataclass
    class Placed:
        at: bytes

    async def fetch() -> Moment | None:
        return None

    types = handler_types(fetch, drop_first=False, localns=locals())
    with pytest.raises(NotSerializable, match=r"^fetch: output\.placed\.at is bytes: use str"):
        JsonType(types.output, at="fetch: output")


def test_a_name_defined_after_the_handler_is_found_at_first_use_and_its_type_is_checked_then() -> None:
    def early(order: Belated) -> TooBelated: ...  # type: ignore[empty-body]

    types = handler_types(early, drop_first=False, localns=globals())
    given: JsonType[Belated] = JsonType(types.input or Hint(None), at="early: input")
    result: JsonType[TooBelated] = JsonType(types.output, at="early: output")

    class Belated(BaseModel):
        count: int

    class TooBelated(BaseModel):
        raw: bytes

    globals().update(Belated=Belated, TooBelated=TooBelated)
    try:
        assert given.round_trip(Belated(count=1), at="early: input") == ({"count": 1}, Belated(count=1))
        with pytest.raises(NotSerializable, match=r"^early: output\.raw is bytes"):
            result.check()
    finally:
        del globals()["Belated"], globals()["TooBelated"]


class Tree(BaseModel):
    branches: list[Branch]


def test_a_model_whose_field_type_comes_later_is_checked_at_first_use() -> None:
    declared = JsonType(Tree, at="grow: output")
    with pytest.raises(SettingsError, match="grow: output uses the name Branch, which does not exist"):
        declared.check()
    globals()["Branch"] = dict[str, int]
    try:
        declared.check()
        assert declared.round_trip(Tree(branches=[{"a": 1}]), at="grow: output")[0] == {"branches": [{"a": 1}]}
    finally:
        del globals()["Branch"]


if TYPE_CHECKING:
    Branch = dict[str, int]


class Described(TypedDict):
    order: Order


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="from 3.12 on pydantic takes both")
def test_a_typed_dict_of_the_standard_library_is_refused_where_pydantic_needs_the_other() -> None:
    with pytest.raises(
        NotSerializable, match=r"^fetch: output: pydantic cannot use list\[Described\]: .*typing_extensions.TypedDict"
    ):
        JsonType(list[Described], at="fetch: output")


def test_a_hint_that_is_no_type_is_refused_by_its_place() -> None:
    with pytest.raises(SettingsError, match=r"^fetch: output is declared 'int\[str\]', which is no type: "):
        JsonType(Hint("int[str]"), at="fetch: output")
