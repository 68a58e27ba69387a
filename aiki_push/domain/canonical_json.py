"""JSON in three uses: checked (what may be a value at all), canonical (what is hashed), compact (what is stored and sent).

A value is None, bool, int within ±2^53, finite float, str, list, or dict with str keys, of exactly these types: a subclass
(a StrEnum, an OrderedDict) or a tuple would come back from JSON as something else, so it is refused like any other type.
"""

import hashlib
import json
import re
from decimal import Decimal
from json.encoder import encode_basestring
from math import isfinite
from typing import NoReturn, cast

from aiki_push.domain.errors import AikiError, NotSerializable
from aiki_push.domain.values import Json

MAX_DEPTH = 100
"""Levels of lists and dicts in a value; `[]` has one."""

MAX_TEXT_DEPTH = MAX_DEPTH + 20
"""Levels in a text that is stored or sent: a value and the records or messages around it."""

MAX_INTEGER = 2**53
"""Up to here a double, the only number of most JSON implementations, holds every integer exactly."""

NO_INPUT_HASH = "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a"
"""The hash that stands for no input at all, SHA-256 of `{}`. None is an input, and hashes otherwise."""

_LONGEST_PATH = 200

_Fault = tuple[str, str]
"""The path to what is wrong, and what is wrong with it."""


class NotJson(AikiError, ValueError):
    """A text that is not JSON, or that holds what no value may. The message says where; correct the sender."""


def check_json(value: object, *, at: str, max_depth: int = MAX_DEPTH) -> None:
    """Refuse what JSON cannot hold and give back unchanged. `at` names the value in the message.

    Raises:
        NotSerializable: with the path, like `input.items[3].price is nan`. Of the contents, it shows only keys.
    """
    fault = _fault(value, max_depth)
    if fault is not None:
        path, reason = fault
        raise NotSerializable(f"{_shortened(at + path)} {reason}")


def canonical_json(value: object, *, at: str = "value") -> str:
    """The one text of all equal values: no spaces, keys in order of UTF-16 code units, numbers as ECMAScript writes them.

    1 and 1.0 are equal here, True and 1 are not. The text is RFC 8785's, and byte for byte that of the TypeScript implementation.

    Raises:
        NotSerializable: as `check_json`.
    """
    check_json(value, at=at)
    return _canonical(cast(Json, value))


def input_hash(value: object) -> str:
    """SHA-256 (lower-case hex) of the canonical JSON of `{"input": value}`; for no input there is `NO_INPUT_HASH`.

    Raises:
        NotSerializable: as `check_json`, at `input`.
    """
    return hashlib.sha256(f'{{"input":{canonical_json(value, at="input")}}}'.encode()).hexdigest()


def compact_json(value: object, *, at: str = "value") -> str:
    """The text that is stored and sent: no spaces, keys in their own order, 1.0 and 1 as they are. `parse_json` undoes it.

    Raises:
        NotSerializable: as `check_json`, but up to `MAX_TEXT_DEPTH`.
    """
    check_json(value, at=at, max_depth=MAX_TEXT_DEPTH)
    return _COMPACT.encode(value)


def parse_json(text: str | bytes, *, at: str = "value") -> Json:
    """The value of a JSON text (RFC 8259, UTF-8 only). Of members with the same key the last one counts.

    Raises:
        NotJson: malformed, not UTF-8, deeper than `MAX_TEXT_DEPTH`, or with NaN, an infinity, an integer beyond ±2^53 or half
            of a surrogate pair. The message quotes no contents but keys.
    """
    try:
        value = _PARSER.decode(text.decode() if isinstance(text, bytes) else text)
        check_json(value, at=at, max_depth=MAX_TEXT_DEPTH)
    except NotSerializable as error:
        raise NotJson(str(error)) from None
    except UnicodeDecodeError as error:
        raise NotJson(f"{at} is not UTF-8 at byte {error.start}") from None
    except ValueError as error:
        raise NotJson(f"{at} is not JSON: {error}") from None  # not chained: a decoder's error carries the whole text
    except RecursionError:
        raise NotJson(f"{at} {_TOO_DEEP[1]}") from None
    return cast(Json, value)


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"it has no number {name}")


_COMPACT = json.JSONEncoder(ensure_ascii=False, allow_nan=False, check_circular=False, separators=(",", ":"))
_PARSER = json.JSONDecoder(parse_constant=_refuse_constant)

_SURROGATE = re.compile("[\ud800-\udfff]")
_TOO_DEEP: _Fault = ("", f"is inside more than {MAX_DEPTH} lists and dicts, or in itself")


def _canonical(value: Json) -> str:
    if type(value) is str:
        return encode_basestring(value)
    if type(value) is dict:
        return "{" + ",".join([f"{encode_basestring(key)}:{_canonical(value[key])}" for key in _in_order(value)]) + "}"
    if type(value) is list:
        return "[" + ",".join([_canonical(item) for item in value]) + "]"
    if type(value) is float:
        return _float_text(value)
    if type(value) is int:
        return str(value)
    return "null" if value is None else "true" if value else "false"


def _in_order(members: dict[str, Json]) -> list[str]:
    # Code points sort like UTF-16 code units, but for those beyond U+FFFF: as surrogates they come before U+E000 to U+FFFF.
    return sorted(members) if "".join(members).isascii() else sorted(members, key=lambda key: key.encode("utf-16-be"))


def _float_text(value: float) -> str:
    """ECMAScript's Number::toString (ECMA-262, 6.1.6.1.20): the digits are those of `repr`, the shortest that are exact."""
    if value == 0:
        return "0"
    text = repr(value)
    mantissa, _, exponent = text.partition("e")
    if not exponent:
        return text.removesuffix(".0")
    if -7 < int(exponent) < 21:
        return format(Decimal(text), "f")
    return f"{mantissa}e{int(exponent):+d}"


def _fault(value: object, levels: int) -> _Fault | None:
    """What is wrong first, in reading order; `levels` of lists and dicts are left."""
    if type(value) is str:
        return None if _is_unicode(value) else ("", "holds half of a surrogate pair, which is not Unicode text")
    if type(value) is dict:
        return _dict_fault(value, levels)
    if type(value) is list:
        return _list_fault(value, levels)
    return None if value is None or type(value) is bool else _number_fault(value)


def _dict_fault(members: dict[object, object], levels: int) -> _Fault | None:
    if levels == 0:
        return _TOO_DEEP
    for key, member in members.items():
        if type(key) is not str:
            return "", f"has a key of type {type(key).__name__}: keys must be str"
        if not _is_unicode(key):
            return "", "has a key with half of a surrogate pair, which is not Unicode text"
        if (fault := _fault(member, levels - 1)) is not None:
            step = f".{key}" if key.isidentifier() else f"[{json.dumps(key)}]"
            return step + fault[0], fault[1]
    return None


def _list_fault(items: list[object], levels: int) -> _Fault | None:
    if levels == 0:
        return _TOO_DEEP
    for index, item in enumerate(items):
        if (fault := _fault(item, levels - 1)) is not None:
            return f"[{index}]{fault[0]}", fault[1]
    return None


def _number_fault(value: object) -> _Fault | None:
    if type(value) is int:
        return None if -MAX_INTEGER <= value <= MAX_INTEGER else ("", "is an integer beyond ±2^53: use str")
    if type(value) is float:
        return None if isfinite(value) else ("", f"is {value}")
    return "", f"is {type(value).__name__}: use None, bool, int, float, str, list or dict"


def _is_unicode(text: str) -> bool:
    return text.isascii() or _SURROGATE.search(text) is None


def _shortened(path: str) -> str:
    half = _LONGEST_PATH // 2
    return path if len(path) <= _LONGEST_PATH else f"{path[:half]}…{path[-half:]}"
