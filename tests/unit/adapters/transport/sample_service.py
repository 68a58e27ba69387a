"""A service that answers what it is told to, and the small fakes that the transport tests share."""

from collections.abc import Callable
from typing import Any, TypeVar, cast

from aiki_push.ports.api.operation import Operation
from aiki_push.testing.clocks import FakeClock

R = TypeVar("R")

PATIENCE_S = 20
"""How long a service holds what a test forgot to let go: then the test fails instead of hanging."""


class SampleService:
    """Gives `answer`, or the result of calling it with the operation, and keeps what it was asked."""

    def __init__(self, answer: object | Callable[[Operation[Any]], object] = None) -> None:
        self.calls: list[tuple[str, Operation[Any]]] = []
        self._answer = answer

    def call(self, namespace: str, operation: Operation[R]) -> R:
        self.calls.append((namespace, operation))
        return cast(R, self._answer(operation) if callable(self._answer) else self._answer)


def raising(error: Exception) -> Callable[[Operation[Any]], object]:
    """An answer for SampleService: `error`."""

    def answer(_operation: Operation[Any]) -> object:
        raise error

    return answer


class Pauses:
    """A sleep that takes no time but on `clock`; `seconds` are those that were asked for."""

    def __init__(self, clock: FakeClock) -> None:
        self._clock = clock
        self.seconds: list[float] = []

    async def __call__(self, seconds: float) -> None:
        self.seconds.append(seconds)
        self._clock.advance(round(seconds * 1_000))
