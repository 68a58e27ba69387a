"""The calls that a step of the workflow makes."""

import asyncio
from collections.abc import Callable
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
