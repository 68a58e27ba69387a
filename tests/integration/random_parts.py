"""What random programs are made of."""

from dataclasses import dataclass
from typing import Any, TypeAlias

Node: TypeAlias = dict[str, Any]
"""`do` names a method of the interpreter, the rest are its arguments."""


@dataclass(frozen=True, slots=True)
class Part:
    """A piece of a program, the hour at which it ends, and whether it raises then."""

    node: Node
    end: int
    fails: bool = False


@dataclass(frozen=True, slots=True)
class Sending:
    """What the world tells the run of `program` at that hour: an event with a number, or, without one, to wake from a sleep."""

    hour: int
    program: str
    name: str
    data: int | None = None


@dataclass(frozen=True, slots=True)
class Program:
    """What a run does, and what it and its children are told meanwhile. `is_retried`: it may raise, and is tried three times."""

    body: Node
    sendings: tuple[Sending, ...]
    is_retried: bool
