"""Futures that sets iterate in the same order on every replay, and the refusal of those whose order is that of memory addresses."""

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
        NotDurable: `asyncio.wait_for`, `wait` got a future of unstable order or of another loop; a future of a thread pool is awaited.
    """
    function = caller.f_code.co_name
    if function == "_wait" and caller.f_globals["__name__"] == "asyncio.tasks":
        waited_for = caller.f_locals["fs"]
        if any(future.get_loop() is not loop for future in waited_for):
            loop.refuse("A future of another event loop")
        if not all(isinstance(future, Branch | StableFuture) for future in waited_for):
            loop.refuse("asyncio.wait() on bare futures", PASS_TASKS)
    elif function == "wrap_future" and caller.f_globals["__name__"] == "asyncio.futures":
        loop.refuse("A future of a thread pool")


def check_caller_of_create_task(loop: OutsideWorld, caller: FrameType | None) -> None:
    """Look whether `asyncio.as_completed` is turning a set of coroutines into tasks.

    Raises:
        NotDurable: it is.
    """
    while caller is not None and caller.f_globals.get("__name__") == "asyncio.tasks":
        if caller.f_code.co_name == "as_completed":
            loop.refuse("asyncio.as_completed() on coroutines", PASS_TASKS)
        caller = caller.f_back
