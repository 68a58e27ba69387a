"""The sentences on types that JSON cannot hold and give back, each with what to use instead."""

import datetime
from collections import deque
from collections.abc import Iterable, Mapping, Sequence, Set
from decimal import Decimal
from enum import Enum
from pathlib import PurePath
from typing import get_origin
from uuid import UUID

from aiki_push.domain.errors import NotSerializable
from aiki_push.sdk.types.hints import type_name

_TYPED = ', or allow it with json="typed"'
_ADVICE: Mapping[type, str] = {
    datetime.datetime: "use str (ISO 8601) or int (milliseconds)" + _TYPED,
    datetime.date: "use str (ISO 8601)" + _TYPED,
    datetime.time: "use str (ISO 8601)" + _TYPED,
    datetime.timedelta: "use int (milliseconds)" + _TYPED,
    Decimal: "use str" + _TYPED,
    UUID: "use str" + _TYPED,
    PurePath: "use str" + _TYPED,
    bytes: "use str (base64)",
    set: "it has no order; use list",
    frozenset: "it has no order; use list",
    Set: "it has no order; use list",
    Enum: "use StrEnum or IntEnum" + _TYPED,
    tuple: "use list, or a tuple of fixed length" + _TYPED,
    deque: "use list" + _TYPED,
    Mapping: "use dict[str, ...]" + _TYPED,
    Sequence: "use list" + _TYPED,
    Iterable: "use list",
}
_OTHERWISE = (
    "use None, bool, int, float, str, list, dict[str, ...], or a pydantic model, dataclass, TypedDict or NamedTuple made of them"
)


def type_refusal(hint: object, place: str) -> NotSerializable:
    """The error for a type that is no JSON: `fetch-order: output.placed_at is datetime: use str …`."""
    cls = get_origin(hint) or hint
    bases: tuple[type, ...] = cls.__mro__ if isinstance(cls, type) else ()
    advice = next((_ADVICE[base] for base in bases if base in _ADVICE), _OTHERWISE)
    return NotSerializable(f"{place} is {type_name(hint)}: {advice}")


def key_refusal(key: object, place: str) -> NotSerializable:
    """The error for a dict with keys that are not str."""
    return NotSerializable(f"{place} has {type_name(key)} keys: JSON has only str keys")
