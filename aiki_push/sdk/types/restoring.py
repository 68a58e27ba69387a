"""What is wrong with a value that does not fit a declared type."""

from collections.abc import Sequence
from dataclasses import dataclass

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from aiki_push.domain.errors import NotSerializable, WorkflowError
from aiki_push.domain.values import Json

MOST_SHOWN = 20
"""Places at fault in one message; the error's `problems` has them all."""


@dataclass(frozen=True, slots=True)
class Problem:
    """One place at fault in a value (`items[0].price`; empty for the whole value) and why. Shows keys, never contents."""

    path: str
    reason: str

    def __str__(self) -> str:
        return f"{self.path}: {self.reason}" if self.path else self.reason


class CannotRestore(WorkflowError):
    """A JSON value does not fit its declared type. Correct the sender, or declare a type that takes what was recorded."""

    def __init__(self, at: str, declared: str, problems: Sequence[Problem]) -> None:
        super().__init__(f"{at} does not fit {declared}: {listed(problems)}")
        self.problems = tuple(problems)


class InvalidValue(NotSerializable):
    """A value does not fit the type declared for it; `problems` lists each place at fault. Correct the value, or the type."""

    def __init__(self, at: str, declared: str, problems: Sequence[Problem]) -> None:
        super().__init__(f"{at} does not fit {declared}: {listed(problems)}")
        self.problems = tuple(problems)


def listed(problems: Sequence[Problem]) -> str:
    """The problems as one text, the first `MOST_SHOWN` of them."""
    more = f"; and {len(problems) - MOST_SHOWN} more" if len(problems) > MOST_SHOWN else ""
    return "; ".join(map(str, problems[:MOST_SHOWN])) + more


def problems_of(error: ValidationError, value: Json) -> list[Problem]:
    """Every problem that a validation of `value` found.

    The reasons are pydantic's, which tell what was expected, and those that the author's own validators raise.
    """
    found = error.errors(include_url=False, include_context=False, include_input=False)
    problems = [Problem(_path(each["loc"], value), _reason(each)) for each in found]
    return list(dict.fromkeys(problems))  # members of a union may report the same


VALIDATOR_FAULTS = (ArithmeticError, AttributeError, LookupError, RuntimeError, TypeError, ValueError)
"""What an author's validator raises by mistake. (ValueError and AssertionError are how it refuses; pydantic collects those.)"""


def _reason(details: ErrorDetails) -> str:
    # The only one of pydantic's own sentences about JSON values that quotes the value.
    return "Input has none of the expected tags" if details["type"] == "union_tag_invalid" else details["msg"]


def _path(location: tuple[int | str, ...], value: Json) -> str:
    """Where a location of pydantic's points to: without the names of union members, which it has between the keys."""
    path = ""
    here: object = value
    for index, step in enumerate(location):
        if isinstance(step, int):
            path += f"[{step}]"
            here = here[step] if isinstance(here, list) and step < len(here) else None
        elif isinstance(here, dict) and (step in here or index == len(location) - 1):
            path += f".{step}"
            here = here.get(step)
    return path.removeprefix(".")
