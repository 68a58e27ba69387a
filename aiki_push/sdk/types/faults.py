"""Where a value and what came back from its JSON differ, and which part of a value cannot be dumped."""

from pydantic_core import to_jsonable_python

from aiki_push.domain.canonical_json import MAX_DEPTH
from aiki_push.sdk.types.records import parts

DUMP_FAULTS = (ArithmeticError, AttributeError, LookupError, RuntimeError, TypeError, ValueError)
"""What a dump raises for a value it cannot dump, or that a serializer of the author's raises on the way."""


def first_difference(given: object, returned: object, *, at: str) -> str | None:
    """A sentence on the first part, in reading order, that came back unequal or as another type; None if there is none.

    An int that came back as an equal float is no difference: where a float is declared, Python takes both.
    """
    if type(given) is not type(returned):
        if type(given) is int and type(returned) is float:
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
        difference = first_difference(given_parts[step], returned_parts[step], at=at + step)
        if difference is not None:
            return difference
    return None


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
