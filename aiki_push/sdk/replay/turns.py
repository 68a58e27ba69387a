"""How the ordinary event loop lets the workflow's loop have a turn."""

import asyncio
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


async def in_plain_callback(function: Callable[[], T]) -> T:
    """What `function` returns or raises, called outside any task: a thread may have two event loops, but not two current tasks."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[T] = loop.create_future()

    def call() -> None:
        try:
            result = function()
        except BaseException as error:  # noqa: BLE001 - raised again where it is awaited
            if not done.done():
                done.set_exception(error)
        else:
            if not done.done():
                done.set_result(result)

    loop.call_soon(call)
    return await done
