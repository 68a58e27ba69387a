"""Which types may be declared: those whose every value JSON can hold and give back unchanged."""

import sys
import typing
from collections import ChainMap
from collections.abc import Callable, Iterator, Mapping, Set
from dataclasses import dataclass, is_dataclass
from enum import Enum
from types import UnionType
from typing import (
    Annotated,
    Any,
    Final,
    ForwardRef,
    Literal,
    NewType,
    NotRequired,
    Required,
    Self,
    TypeVar,
    Union,
    cast,
    get_args,
    get_origin,
)

import typing_extensions
from pydantic import BaseModel, PydanticSchemaGenerationError, TypeAdapter
from typing_extensions import ReadOnly, TypeForm

from aiki_push.sdk.types.hints import Hint
from aiki_push.sdk.types.records import field_types, record_class, substituted
from aiki_push.sdk.types.refusals import key_refusal, type_refusal

JsonRule = Literal["strict", "typed"]
"""`typed` also lets through what pydantic itself takes to JSON and back, like datetime and UUID."""


@dataclass(frozen=True, slots=True)
class TypeFacts:
    """What the check of a type found out for later."""

    tags: Mapping[type, tuple[str, ...]]
    """The models and dataclasses that are in a union and not its first, with the path steps of their Literal fields."""


def check_type(hint: object, *, at: str, names: Mapping[str, object] | None = None, json: JsonRule = "strict") -> TypeFacts:
    """Refuse a type that JSON cannot hold and give back. `at` names it in the message: `fetch-order: output`.

    Any and object are not looked into, nor are type variables that nothing is known of.

    Raises:
        NotSerializable: naming the place: `fetch-order: output.placed_at is datetime: …`.
        NameError: a name that the type uses does not exist (yet), also not among `names`.
    """
    walk = _Walk(names or {}, json)
    walk.visit(hint, at)
    return TypeFacts(walk.tags)


_SCALARS = (str, int, float, bool, None, type(None))
_UNCHECKED = (Any, object, Self)  # Self is being checked already
_WRAPPERS = (Annotated, Required, NotRequired, ReadOnly, Final)
_ALIASES: tuple[type, ...] = (typing_extensions.TypeAliasType, getattr(typing, "TypeAliasType", typing_extensions.TypeAliasType))
_NEVER_JSON = (set, frozenset, Set, type, Callable)


class _Walk:
    """One pass over all that a type is made of. Equal parts are visited once, so recursive types end."""

    def __init__(self, names: Mapping[str, object], json: JsonRule) -> None:
        self.tags: dict[type, tuple[str, ...]] = {}
        self._names = names
        self._json = json
        self._visited: list[object] = []
        self._visitors: Mapping[object, Callable[[object, str], None]] = {
            Union: self._visit_union,
            UnionType: self._visit_union,
            Literal: self._visit_literal,
            list: self._visit_list,
            dict: self._visit_dict,
            tuple: self._visit_tuple,
        }

    def visit(self, hint: object, place: str) -> None:
        hint = self._bare(hint)
        if hint in _SCALARS or hint in _UNCHECKED or hint in self._visited:
            return
        self._visited.append(hint)
        origin = get_origin(hint) or hint
        visitor = next((visitor for kind, visitor in self._visitors.items() if kind is origin), self._visit_class)
        visitor(hint, place)

    def _bare(self, hint: object) -> object:
        """The type without wrappers, and instead of a name for a type (an alias, a type variable, a text) the type itself."""
        while True:
            origin = get_origin(hint) or hint
            if origin in _WRAPPERS and get_args(hint):
                hint = get_args(hint)[0]
            elif isinstance(hint, NewType):
                hint = hint.__supertype__
            elif isinstance(hint, TypeVar):
                hint = Union[hint.__constraints__] if hint.__constraints__ else hint.__bound__ or Any  # noqa: UP007  # a computed one
            elif isinstance(hint, str | ForwardRef):
                hint = Hint(hint, self._names).resolve()
            elif isinstance(origin, _ALIASES):
                hint = self._alias_value(origin, get_args(hint))
            else:
                return hint

    def _alias_value(self, alias: Any, arguments: tuple[object, ...]) -> object:
        module = getattr(sys.modules.get(alias.__module__), "__dict__", {})
        around = ChainMap(module, dict(self._names))
        return substituted(Hint(alias.__value__, around).resolve(), dict(zip(alias.__type_params__, arguments, strict=False)))

    def _visit_union(self, hint: object, place: str) -> None:
        members = list(self._members(hint))
        records = [record for member in members if (record := record_class(member)) is not None]
        for record in records[1:]:
            if issubclass(record, BaseModel) or is_dataclass(record):
                literals = (
                    step for step, field in field_types(record, self._names).items() if get_origin(self._bare(field)) is Literal
                )
                self.tags[record] = tuple(literals)
        for member in members:
            self.visit(member, place)

    def _members(self, hint: object) -> Iterator[object]:
        for member in map(self._bare, get_args(hint)):
            if get_origin(member) in (Union, UnionType):
                yield from self._members(member)
            else:
                yield member

    def _visit_literal(self, hint: object, place: str) -> None:
        for value in get_args(hint):
            if type(value) not in _SCALARS and not _is_json_enum(type(value)):
                self._refuse_unless_typed(type(value), place)

    def _visit_list(self, hint: object, place: str) -> None:
        for item in get_args(hint):
            self.visit(item, f"{place}[]")

    def _visit_dict(self, hint: object, place: str) -> None:
        if get_args(hint):
            key, member = get_args(hint)
            if self._json == "strict" and not self._is_text(key):
                raise key_refusal(key, place)
            self.visit(member, f"{place}[]")

    def _is_text(self, key: object) -> bool:
        key = self._bare(key)
        if get_origin(key) is Literal:
            return all(isinstance(value, str) for value in get_args(key))
        if get_origin(key) in (Union, UnionType):
            return all(map(self._is_text, get_args(key)))
        return key in (str, Any) or _is_email(key) or (_is_json_enum(key) and issubclass(cast(type, key), str))

    def _visit_tuple(self, hint: object, place: str) -> None:
        items = get_args(hint)
        is_bare = hint in (tuple, typing.Tuple)  # noqa: UP006  # they have no items, like tuple[()], which has a shape
        if is_bare or Ellipsis in items or any(map(_is_unpacked, items)):
            self._refuse_unless_typed(hint, place)
        for index, item in enumerate(items):
            if item is not Ellipsis:
                self.visit(item, f"{place}[{index}]")

    def _visit_class(self, hint: object, place: str) -> None:
        if _is_json_enum(hint) or _is_email(hint):
            return
        if record_class(hint) is None:
            self._refuse_unless_typed(hint, place)
            return
        for step, field in field_types(hint, self._names).items():
            self.visit(field, place + step)

    def _refuse_unless_typed(self, hint: object, place: str) -> None:
        if self._json == "strict" or (get_origin(hint) or hint) in _NEVER_JSON:
            raise type_refusal(hint, place)
        try:
            TypeAdapter(cast(TypeForm[object], hint))
        except PydanticSchemaGenerationError:
            raise type_refusal(hint, place) from None
        for argument in get_args(hint):
            if argument is not Ellipsis:
                self.visit(argument, f"{place}[]")


def _is_json_enum(hint: object) -> bool:
    return isinstance(hint, type) and issubclass(hint, Enum) and issubclass(hint, str | int)


def _is_email(hint: object) -> bool:
    """Pydantic's EmailStr, whose values are plain str. Its module is slow to import; who uses the type has imported it."""
    return hint is getattr(sys.modules.get("pydantic.networks"), "EmailStr", str)


def _is_unpacked(item: object) -> bool:
    return get_origin(item) in (typing.Unpack, typing_extensions.Unpack)
