"""Taking values of one declared type to JSON and back: three ways, from no declaration to a model."""

import json
from collections.abc import Iterator, Mapping
from typing import Any, Literal, Protocol, TypedDict, TypeVar, cast

from pydantic import TypeAdapter, ValidationError
from pydantic_core import to_jsonable_python
from typing_extensions import override

from aiki_push.domain.canonical_json import check_json
from aiki_push.domain.errors import NotSerializable
from aiki_push.domain.values import Json
from aiki_push.sdk.types.faults import DUMP_FAULTS, first_difference, part_without_json
from aiki_push.sdk.types.hints import type_name
from aiki_push.sdk.types.records import parts
from aiki_push.sdk.types.restoring import VALIDATOR_FAULTS, CannotRestore, InvalidValue, Problem, problems_of

T = TypeVar("T")


class Codec(Protocol[T]):
    """The uses of a declared type, all documented at `JsonType`. `at` names the value in messages."""

    def encode(self, value: T, *, at: str) -> Json:
        """Its JSON."""
        ...

    def decode(self, value: Json, *, at: str) -> T:
        """The value this is the JSON of."""
        ...

    def round_trip(self, value: T, *, at: str) -> tuple[Json, T]:
        """Its JSON, and what comes back."""
        ...

    def key_value(self, value: T, *, at: str) -> Json:
        """What of it counts for the key of a call."""
        ...


class Untyped(Codec[Any]):
    """Nothing is declared: values are plain JSON and stay as they are."""

    @override
    def encode(self, value: Any, *, at: str) -> Json:
        check_json(value, at=at)
        return cast(Json, value)

    @override
    def decode(self, value: Json, *, at: str) -> Any:
        return value

    @override
    def round_trip(self, value: Any, *, at: str) -> tuple[Json, Any]:
        encoded = self.encode(value, at=at)
        # A copy through text: whoever goes on changing the value must not change what the workflow sees.
        return encoded, json.loads(json.dumps(encoded)) if isinstance(encoded, list | dict) else encoded

    @override
    def key_value(self, value: Any, *, at: str) -> Json:
        return self.encode(value, at=at)


class Plain(Codec[Any]):
    """str, int, float, bool or None: exactly this type, but an int where a float is declared becomes one."""

    def __init__(self, declared: type) -> None:
        self._declared = declared

    @override
    def encode(self, value: Any, *, at: str) -> Json:
        check_json(value, at=at)
        if not self._fits(value):
            raise NotSerializable(f"{at} is {type(value).__name__}, but declared {type_name(self._declared)}")
        return cast(Json, self._of_declared(value))

    @override
    def decode(self, value: Json, *, at: str) -> Any:
        if not self._fits(value):
            name = type_name(self._declared)
            raise CannotRestore(at, name, [Problem("", f"Input should be {name}, not {type(value).__name__}")])
        return self._of_declared(value)

    @override
    def round_trip(self, value: Any, *, at: str) -> tuple[Json, Any]:
        encoded = self.encode(value, at=at)  # immutable, and exact in JSON: no text can tell more
        return encoded, encoded

    @override
    def key_value(self, value: Any, *, at: str) -> Json:
        return self.encode(value, at=at)

    def _fits(self, value: object) -> bool:
        return type(value) is self._declared or (type(value) is int and self._declared is float)

    def _of_declared(self, value: Any) -> Any:
        return float(value) if self._declared is float else value


class Modelled(Codec[T]):
    """Everything else: pydantic dumps and restores."""

    def __init__(self, adapter: TypeAdapter[T], declared: str, tags: Mapping[type, tuple[str, ...]]) -> None:
        self._adapter = adapter
        self._declared = declared
        self._tags = tags

    @override
    def encode(self, value: T, *, at: str) -> Json:
        dumped = self._dump(value, at=at)
        check_json(dumped, at=at)
        return dumped

    @override
    def decode(self, value: Json, *, at: str) -> T:
        try:
            return self._adapter.validate_json(json.dumps(value), strict=True, by_alias=True, by_name=True)
        except ValidationError as error:
            problems = problems_of(error, value)
        except VALIDATOR_FAULTS as error:
            raise CannotRestore(at, self._declared, [Problem("", f"a validator raised {type(error).__name__}")]) from error
        raise CannotRestore(at, self._declared, problems)  # outside of `except`: pydantic's error carries the value

    @override
    def round_trip(self, value: T, *, at: str) -> tuple[Json, T]:
        encoded = self.encode(value, at=at)
        try:
            returned = self.decode(encoded, at=at)
        except CannotRestore as error:
            raise InvalidValue(f"{at} as JSON", self._declared, error.problems) from error
        difference = first_difference(value, returned, at=at)
        if difference is not None:
            raise NotSerializable(difference)
        return encoded, returned

    @override
    def key_value(self, value: T, *, at: str) -> Json:
        minimal = self._dump(value, at=at, exclude_defaults=True)
        marks: dict[str, Json] = dict(self._marks(value, "")) if self._tags else {}
        return [minimal, marks] if marks else minimal

    def _dump(self, value: T, *, at: str, exclude_defaults: bool = False) -> Json:
        try:
            dumped = self._adapter.dump_python(value, exclude_defaults=exclude_defaults, warnings="error", **_TO_JSON)
        except DUMP_FAULTS:
            pass  # pydantic's error carries the value
        else:
            return cast(Json, dumped)
        raise self._why_not(value, at)

    def _why_not(self, value: T, at: str) -> NotSerializable:
        try:
            dumped = self._adapter.dump_python(value, warnings="none", **_TO_JSON)
        except DUMP_FAULTS:
            return NotSerializable(part_without_json(value, at=at))
        try:
            returned = self.decode(dumped, at=at)
        except CannotRestore as error:
            return InvalidValue(at, self._declared, error.problems)
        return NotSerializable(first_difference(value, returned, at=at) or f"{at} is not what {self._declared} declares")

    def _marks(self, value: object, path: str) -> Iterator[tuple[str, Json]]:
        """What tells the members of a union apart, although it may be a default: both could have the same minimal dump."""
        inner = parts(value) or {}
        for step in self._tags.get(type(value), ()):
            yield path + step, to_jsonable_python(inner.get(step))
        for step, part in inner.items():
            yield from self._marks(part, path + step)


class _ToJson(TypedDict):
    mode: Literal["json"]
    by_alias: bool
    round_trip: bool


_TO_JSON: _ToJson = {"mode": "json", "by_alias": True, "round_trip": True}  # round_trip: without computed fields
