"""Where a value and what came back from its JSON differ, and which part of a value cannot be dumped."""

from dataclasses import is_dataclass

from pydantic import BaseModel
from pydantic_core import to_jsonable_python

from aiki_push.domain.canonical_json import MAX_DEPTH
from aiki_push.sdk.types.records import parts

DUMP_FAULTS = (ArithmeticError, AttributeError, LookupError, RuntimeError, TypeError, ValueError)
"""What a dump raises for a value it cannot dump, or that a serializer of the author's raises on the way."""


def first_difference(given: object, returned: object, *, at: str) -> str | None:
    """A sentence on the first part, in reading order, that came back unequal or as another type; None if there is none.

    An int that came back as an equal float is no difference: where a float is declared, Python takes both.
    """
    return None if _is_surely_kept(given, returned) else _difference(given, returned, at)


def _difference(given: object, returned: object, at: str) -> str | None:
    if type(given) is not type(returned):
        if type(given) is int and type(returned) is float and given == returned:
            return None
        return f"{at} is {type(given).__name__} and came back from JSON as {type(returned).__name__}"
    given_parts, returned_parts = parts(given), parts(returned)
    if given_parts is None or returned_parts is None:
        return None if given == returned else f"{at} came back from JSON as another {type(given).__name__}"
    for step in {**given_parts, **returned_parts}:
        if step not in returned_parts:
            return f"{at}{step} did not come back from JSON"
        if step not in given_parts:
            return f"{at}{step} came back from JSON, but was not there before"
        difference = _difference(given_parts[step], returned_parts[step], at + step)
        if difference is not None:
            return difference
    return None


def _is_surely_kept(given: object, returned: object) -> bool:
    """The quick answer for nearly every value. False means: look closer."""
    if type(given) is not type(returned):
        return False
    if isinstance(given, _WHOLES):
        return given == returned
    if isinstance(given, list | tuple) and isinstance(returned, list | tuple):
        return len(given) == len(returned) and all(map(_is_surely_kept, given, returned))
    if isinstance(given, dict) and isinstance(returned, dict):
        return _is_surely_kept(list(given), list(returned)) and _is_surely_kept(list(given.values()), list(returned.values()))
    if isinstance(given, BaseModel) and isinstance(returned, BaseModel):
        return all(_is_surely_kept(getattr(given, inside), getattr(returned, inside)) for inside in _INSIDES)
    return is_dataclass(given) and hasattr(given, "__dict__") and _is_surely_kept(vars(given), vars(returned))


_WHOLES = (str, int, float, type(None))
_INSIDES = ("__dict__", "__pydantic_extra__", "__pydantic_private__")


def part_without_json(value: object, *, at: str) -> str:
    """A sentence on the innermost part of a value, in reading order, that cannot be dumped."""
    place, part = at, value
    for _ in range(MAX_DEPTH):
        inner = next(((step, each) for step, each in (parts(part) or {}).items() if not _can_be_dumped(each)), None)
        if inner is None:
            return f"{place} is {type(part).__name__}, which cannot be dumped to JSON"
        place, part = place + inner[0], inner[1]
    return f"{at} is inside more than {MAX_DEPTH} lists and dicts, or in itself"


def _can_be_dumped(value: object) -> bool:
    try:
        to_jsonable_python(value)
    except DUMP_FAULTS:
        return False
    return True
