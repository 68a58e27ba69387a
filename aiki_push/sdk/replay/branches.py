"""Branches: the tasks of a workflow's event loop, their names, and how a branch is closed before its end."""

import asyncio
from collections.abc import Callable, Coroutine, Generator
from contextvars import Context
from types import FrameType
from typing import Any, TypeVar, cast

from aiki_push.domain.errors import Dropped
from aiki_push.sdk.replay.lineage import Lineage
from aiki_push.sdk.replay.outside_world import OutsideWorld, is_user_code, place_of

T = TypeVar("T")


class BranchBody:
    """A coroutine as its task sees it, so that the loop can end it by `Dropped` in place of whatever the task would give it.

    `send` is the coroutine's own method: a step costs nothing extra.
    """

    __slots__ = ("_is_dropped", "_loop", "coroutine", "has_ended", "send")

    send: Callable[[None], object]

    def __init__(self, coroutine: Coroutine[Any, Any, object], loop: OutsideWorld) -> None:
        self._loop = loop
        self._is_dropped = False
        self.coroutine = coroutine
        self.has_ended = False
        self.send = coroutine.send

    def throw(self, error: BaseException) -> object:
        """Raise the error in the coroutine; as `NotDurable` what asyncio says about a future of another event loop."""
        if self._is_dropped:
            return self.send(None)
        if type(error) is RuntimeError and "attached to a different loop" in str(error):
            error = self._loop.violate(
                f"Branch {self._loop.branch} awaits something of another event loop ({stand(self.coroutine)}), "
                "which a replay could not repeat. Do this in a task."
            )
        return self.coroutine.throw(error)

    def close(self) -> None:
        """Close the coroutine without running its task."""
        self.coroutine.close()

    def __await__(self) -> Generator[Any, Any, object]:
        return self.coroutine.__await__()

    def __getattr__(self, name: str) -> object:
        return getattr(self.coroutine, name)

    def drop(self) -> None:
        """From now on each step of the task raises `Dropped` in the coroutine and leaves the task pending, until `has_ended`."""
        self._is_dropped = True
        self.send = self._drop

    def finish(self) -> None:
        """From now on the coroutine is left alone, and a step of the task ends the task."""
        self._is_dropped = self.has_ended = True
        self.send = _end_task

    def _drop(self, _: None) -> object:
        try:
            return self.coroutine.throw(Dropped("The workflow is being dropped: its run goes on elsewhere or later."))
        except KeyboardInterrupt:
            raise
        except BaseException:  # noqa: BLE001 - user code that is being closed may raise anything, and nobody is left to hear it
            self.finish()
            return None


def _end_task(_: None) -> object:
    raise StopIteration


class Branch(asyncio.Task[T]):
    """A task that hashes by its creation number, so that sets of tasks are iterated alike on every replay."""

    def __init__(
        self, body: BranchBody, *, loop: OutsideWorld, number: int, lineage: Lineage, name: str | None, context: Context | None
    ) -> None:
        self.number = number  # before the task registers itself in a set
        self.lineage = lineage
        self.body = body
        name = name or f"branch {lineage.name}"
        super().__init__(cast(Coroutine[Any, Any, T], body), loop=loop, name=name, context=context)

    def __hash__(self) -> int:
        return self.number

    def get_coro(self) -> Coroutine[Any, Any, T]:
        """The coroutine that this branch runs."""
        return cast(Coroutine[Any, Any, T], self.body.coroutine)


def stand(coroutine: object) -> str:
    """`qualname (file.py:line)` of the innermost user code that a suspended coroutine waits in."""
    awaited, found = coroutine, ""
    while isinstance(frame := getattr(awaited, "cr_frame", None), FrameType):
        if not found or is_user_code(frame):
            found = f"{frame.f_code.co_qualname} ({place_of(frame)})"
        awaited = getattr(awaited, "cr_await", None)
    return found or repr(coroutine)
