"""How a run may end, and whether it did."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain, product
from typing import Any, TypeAlias

from aiki_push import WorkflowVersion
from aiki_push.domain.values import Json

Pattern: TypeAlias = "str | list[Pattern] | tuple[Pattern, ...]"
"""In a pattern, a list is matched item by item, and a tuple has the alternatives."""

FAILED = "the run fails"


@dataclass(frozen=True, slots=True)
class Scenario:
    """A workflow, and what is right as its output, or FAILED, without what makes results different from each other.

    `takes_input`: it is started as a child only.
    """

    version: WorkflowVersion[..., Any]
    ending: Pattern
    takes_input: bool = False


def fits(pattern: Pattern, output: Json) -> bool:
    """Whether `output` is one that `pattern` describes."""
    if isinstance(pattern, tuple):
        return any(fits(one, output) for one in pattern)
    if isinstance(pattern, list):
        return isinstance(output, list) and len(output) == len(pattern) and all(map(fits, pattern, output))
    return pattern == (output.partition("#")[0] if isinstance(output, str) else output)


def joined(*parts: tuple[list[Pattern], ...]) -> Pattern:
    """One list of an alternative of each part."""
    return tuple(list(chain.from_iterable(chosen)) for chosen in product(*parts))


def texts_in(output: Json) -> Iterator[str]:
    """What in `output` is like nothing else: results of tasks, data of events."""
    if isinstance(output, list):
        for item in output:
            yield from texts_in(item)
    elif isinstance(output, str) and "#" in output:
        yield output
