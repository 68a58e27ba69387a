"""A declared type and its values on their way to JSON and back."""

from contextlib import suppress
from typing import Any, Generic, TypeVar, cast, overload

from pydantic import PydanticUserError, TypeAdapter
from typing_extensions import TypeForm

from aiki_push.domain.errors import NotSerializable, SettingsError
from aiki_push.domain.values import Json
from aiki_push.sdk.types.allowed import JsonRule, check_type
from aiki_push.sdk.types.codecs import Codec, Modelled, Plain, Untyped
from aiki_push.sdk.types.hints import Hint, type_name

T = TypeVar("T")


class JsonType(Generic[T]):
    """Built once for each declared type. `at` names the place in messages, like `fetch-order: output`.

    A name in the type that does not exist yet is looked for again at first use, and only then the type is checked.
    """

    __slots__ = ("_at", "_codec", "_hint", "_json")

    @overload
    def __init__(self, declared: Hint, *, at: str, json: JsonRule = "strict") -> None: ...
    @overload
    def __init__(self, declared: TypeForm[T], *, at: str, json: JsonRule = "strict") -> None: ...
    def __init__(self, declared: object, *, at: str, json: JsonRule = "strict") -> None:
        """Raises NotSerializable for a type that JSON cannot hold and give back, naming the part of it."""
        self._hint = declared if isinstance(declared, Hint) else Hint(declared)
        self._at = at
        self._json: JsonRule = json
        self._codec: Codec[T] | None = None
        with suppress(NameError):  # the name may be defined further down
            self._codec = self._built()

    def check(self) -> None:
        """Makes sure that the type is checked, now that every name should exist; for registration.

        Raises:
            SettingsError: a name still does not exist.
            NotSerializable: as the constructor.
        """
        self._ready()

    def encode(self, value: T, *, at: str) -> Json:
        """The JSON of a value: by alias, every field that is not computed, nothing but plain JSON.

        Raises:
            InvalidValue: the value is not of the declared type; lists each place at fault.
            NotSerializable: JSON cannot hold it; names the place.
        """
        return self._ready().encode(value, at=at)

    def decode(self, value: Json, *, at: str) -> T:
        """The value that this is the JSON of. Strict ("5" is no int), by alias or name, and through the model's own validators.

        Raises:
            CannotRestore: it does not fit; lists each place at fault.
        """
        return self._ready().decode(value, at=at)

    def round_trip(self, value: T, *, at: str) -> tuple[Json, T]:
        """The JSON of a value, and what `decode` makes of it: equal to the value, of the same types, sharing nothing mutable.

        Raises:
            NotSerializable: as `encode`, and when what comes back is not equal or of another type; says what came back.
        """
        return self._ready().round_trip(value, at=at)

    def key_value(self, value: T, *, at: str = "value") -> Json:
        """What stands for a value in the key of a call: its JSON without the fields that equal their default.

        So fields with a default can be added to models and dataclasses at any depth, and members to the end of a union,
        without changing any key.
        Factories are called to compare; one that takes the values of other fields is not, and its field always counts.

        Raises:
            NotSerializable: as `encode`.
        """
        return self._ready().key_value(value, at=at)

    def _ready(self) -> Codec[T]:
        if self._codec is None:
            try:
                self._codec = self._built()
            except NameError as error:
                raise SettingsError(
                    f"{self._at} uses the name {error.name}, which does not exist: define or import it where the type is"
                    " declared, not only for type checkers"
                ) from error
        return self._codec

    def _built(self) -> Codec[T]:
        try:
            declared = self._hint.resolve()
        except (SyntaxError, TypeError) as error:
            raise SettingsError(f"{self._at} is declared {self._hint.annotation!r}, which is no type: {error}") from error
        if declared in (Any, object):
            return cast(Codec[T], Untyped())
        if declared in (str, int, float, bool, type(None)):
            return cast(Codec[T], Plain(cast(type, declared)))
        facts = check_type(declared, at=self._at, names=self._hint.names, json=self._json)
        return Modelled(self._adapter(declared), type_name(declared), facts.tags)

    def _adapter(self, declared: object) -> TypeAdapter[T]:
        try:
            adapter = TypeAdapter[T](cast(TypeForm[T], declared))
            if not adapter.pydantic_complete:
                adapter.rebuild(_types_namespace=self._hint.names)
        except PydanticUserError as error:
            raise NotSerializable(f"{self._at}: pydantic cannot use {type_name(declared)}: {error.message}") from error
        return adapter
