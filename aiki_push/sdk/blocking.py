"""The one door for code that is not asynchronous: scripts, Django views, notebooks, triggers."""

import asyncio
import inspect
import os
import threading
from collections.abc import Awaitable
from datetime import timedelta
from typing import TypeVar

from aiki_push.domain.durations import duration_ms
from aiki_push.domain.errors import AikiError, Dropped
from aiki_push.sdk.replay.outside_world import OutsideWorld

T = TypeVar("T")


def run_blocking(awaitable: Awaitable[T], *, timeout: timedelta | None = None) -> T:
    """What `awaitable` gives, awaited on an event loop in a thread of its own, while the calling thread waits.

    One loop serves all calls of the process, from any thread, also from code that runs on an event loop of its own (which stands
    still meanwhile). Connections that a client opens belong to that loop: release them by `run_blocking(client.close())`.
    Raises what the awaitable raises; TimeoutError after `timeout` of wall-clock time, and it is cancelled then.
    """
    try:
        _refuse_misuse()
        seconds = None if timeout is None else duration_ms(timeout, name="timeout") / 1_000
    except BaseException:
        if inspect.iscoroutine(awaitable):
            awaitable.close()  # nobody will ever await it
        raise
    future = asyncio.run_coroutine_threadsafe(_awaited(awaitable), _loop_of_process().running())
    try:
        return future.result(seconds)
    except TimeoutError:
        if future.done():
            raise
        raise TimeoutError(f"it did not end within {seconds} s and was cancelled") from None
    finally:
        future.cancel()


class _BackgroundLoop:
    """An event loop in a daemon thread, begun on first use."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None

    def running(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                threading.Thread(target=self._loop.run_forever, name="aiki-push run_blocking", daemon=True).start()
            return self._loop

    def is_running_here(self) -> bool:
        return self._loop is not None and self._loop is _running_loop()


_LOOPS: dict[int, _BackgroundLoop] = {}
"""By process id: a forked process has none of its parent's threads, and its parent's lock may be held for ever."""


def _loop_of_process() -> _BackgroundLoop:
    return _LOOPS.setdefault(os.getpid(), _BackgroundLoop())


def _refuse_misuse() -> None:
    running = _running_loop()
    if isinstance(running, OutsideWorld):
        running.refuse("run_blocking()")
        raise Dropped("the workflow is being closed")
    if _loop_of_process().is_running_here():
        raise AikiError("run_blocking() was called by code that run_blocking() runs, and would wait for itself: use await")


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


async def _awaited(awaitable: Awaitable[T]) -> T:
    return await awaitable
