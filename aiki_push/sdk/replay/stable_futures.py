"""Futures that sets iterate in the same order on every replay, and the refusal of those that they do not."""

import asyncio
from types import FrameType
from typing import TypeVar

from aiki_push.sdk.replay.branches import Branch
from aiki_push.sdk.replay.outside_world import OutsideWorld

T = TypeVar("T")

PASS_TASKS = (
    "Their order would be that of memory addresses, another one on every replay: pass tasks made by asyncio.create_task()."
)


class StableFuture(asyncio.Future[T]):
    """A future that hashes by its creation number. Equal only to itself."""

    def __init__(self, *, loop: OutsideWorld, number: int) -> None:
        super().__init__(loop=loop)
        self.number = number

    def __hash__(self) -> int:
        return self.number


def check_caller_of_create_future(loop: OutsideWorld, caller: FrameType) -> None:
    """Look whether asyncio is about to wait for something that no replay could repeat.

    Raises:
        NotDurable: `asyncio.wait` got a future of another loop or of unstable order, or a thread pool's future is awaited.
    """
    function = caller.f_code.co_name
    if function == "_wait" and _is_of("asyncio.tasks", caller):
        waited_for = caller.f_locals["fs"]
        if any(future.get_loop() is not loop for future in waited_for):
            loop.refuse("asyncio.wait() on a future of another event loop")
        if not all(isinstance(future, Branch | StableFuture) for future in waited_for):
            loop.refuse("asyncio.wait() on the result of gather() or on a bare Future", PASS_TASKS)
    elif function == "wrap_future" and _is_of("asyncio.futures", caller):
        loop.refuse("asyncio.wrap_future()")


def check_caller_of_create_task(loop: OutsideWorld, caller: FrameType | None) -> None:
    """Look whether `asyncio.as_completed` is turning a set of coroutines into tasks.

    Raises:
        NotDurable: it is.
    """
    while caller is not None and _is_of("asyncio.tasks", caller):
        if caller.f_code.co_name == "as_completed":
            loop.refuse("asyncio.as_completed() on coroutines", PASS_TASKS)
        caller = caller.f_back


def _is_of(module: str, frame: FrameType) -> bool:
    return frame.f_globals.get("__name__") == module
