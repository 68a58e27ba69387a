"""One step of a workflow: being in its event loop in place of the ordinary one, and making the calls that are ready."""

import asyncio
import sys
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import contextmanager
from contextvars import Context
from typing import Any, NamedTuple


class ReadyCall(NamedTuple):
    """A call to make in this step, unless its handle is cancelled."""

    handle: asyncio.Handle
    context: Context
    callback: Callable[..., object]
    args: tuple[Any, ...]

    def make(self) -> BaseException | None:
        """What the call raised. A task keeps what its coroutine raises, so this is for the plain callbacks of users.

        Raises:
            KeyboardInterrupt: somebody ends the process.
        """
        try:
            if not self.handle.cancelled():
                self.context.run(self.callback, *self.args)
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # noqa: BLE001 - the callback of a user may raise anything
            return error
        finally:
            del self  # the traceback of a task's error leads to this frame, and back to the task
        return None


@contextmanager
def running(loop: asyncio.AbstractEventLoop, generator_left: Callable[[AsyncGenerator[Any, Any]], None]) -> Iterator[None]:
    """Be in `loop`, in place of an ordinary one around it; `generator_left` is given async generators freed before their end."""
    outer_loop, outer_hooks = asyncio._get_running_loop(), sys.get_asyncgen_hooks()
    asyncio._set_running_loop(loop)
    sys.set_asyncgen_hooks(firstiter=None, finalizer=generator_left)
    try:
        yield
    finally:
        sys.set_asyncgen_hooks(*outer_hooks)
        asyncio._set_running_loop(outer_loop)
