"""A workflow on its own event loop, without an executor."""

import asyncio
from collections.abc import Coroutine
from typing import TypeVar

from aiki_push.domain.values import TimestampMs
from aiki_push.sdk.replay.loop import WorkflowLoop

T = TypeVar("T")


def begun(coroutine: Coroutine[object, object, T], at: int = 0) -> tuple[WorkflowLoop, asyncio.Task[T]]:
    """A loop at the time `at` that has run the coroutine until idle."""
    loop = WorkflowLoop()
    loop.set_time_ms(TimestampMs(at))
    task = loop.start(coroutine)
    loop.run_until_idle()
    return loop, task
