"""Refusing the outside world: what a workflow may not touch because a replay could not repeat it, and where it tried."""

import asyncio
import inspect
from pathlib import PurePath
from types import FrameType
from typing import Any

from aiki_push.domain.errors import NotDurable
from aiki_push.sdk.replay.lineage import Lineage

MAX_REFUSALS = 100
"""After so many refusals a call gives a future that never ends, so that a loop which swallows every error stands still."""


def _refused(name: str) -> Any:  # fits the type of every method
    """The method `name` of an event loop, refusing every call."""

    def method(self: "OutsideWorld", *_: object, **__: object) -> asyncio.Future[Any]:
        asyncio_function = _caller()[0]
        return self.refuse(f"asyncio.{asyncio_function}()" if asyncio_function else f"loop.{name}()")

    return method


class OutsideWorld(asyncio.AbstractEventLoop):
    """The part of an event loop's interface that workflows do not have: each method refuses, called from any thread."""

    violation: NotDurable | None
    """The first refused use of the outside world. It decides the segment even where user code caught the error."""

    dropping: bool
    """Whether the workflow is being dropped, or was: nothing that its code does now has an effect or is recorded."""

    def __init__(self) -> None:
        self.violation = None
        self.dropping = False
        self._refusals = 0

    @property
    def lineage(self) -> Lineage:
        """Who runs now; plain callbacks count as the main branch."""
        raise NotImplementedError

    @property
    def branch(self) -> str:
        """Name of the branch that runs now: `0` is the main one, `0.2` the second that it created."""
        return self.lineage.name

    def refuse(self, call: str, fix: str = "A replay could not repeat it: do this in a task.") -> asyncio.Future[Any]:
        """Record that workflow code used `call`, and raise. While the workflow is dropped: a future that never ends.

        Raises:
            NotDurable: naming the call, the place in the user's code and the fix.
        """
        self._refusals += 1
        if not self.dropping:
            place = _caller()[1]
            error = self.violate(f"{call} was used in a workflow ({place}, branch {self.branch}). {fix}")
            if self._refusals <= MAX_REFUSALS:
                raise error
        return self.create_future()

    def violate(self, message: str) -> NotDurable:
        """The error with this message, kept as the violation unless there is an earlier one."""
        error = NotDurable(message)
        if self.violation is None:
            self.violation = error
        return error

    def get_debug(self) -> bool:
        """Always False: the debug mode of asyncio measures and prints."""
        return False

    def is_closed(self) -> bool:
        """Whether the workflow was dropped."""
        return self.dropping

    call_soon_threadsafe = _refused("call_soon_threadsafe")
    run_in_executor = _refused("run_in_executor")
    set_default_executor = _refused("set_default_executor")
    shutdown_default_executor = _refused("shutdown_default_executor")

    run_forever = _refused("run_forever")
    run_until_complete = _refused("run_until_complete")
    stop = _refused("stop")
    close = _refused("close")
    shutdown_asyncgens = _refused("shutdown_asyncgens")

    getaddrinfo = _refused("getaddrinfo")
    getnameinfo = _refused("getnameinfo")
    create_connection = _refused("create_connection")
    create_server = _refused("create_server")
    create_unix_connection = _refused("create_unix_connection")
    create_unix_server = _refused("create_unix_server")
    create_datagram_endpoint = _refused("create_datagram_endpoint")
    connect_accepted_socket = _refused("connect_accepted_socket")
    start_tls = _refused("start_tls")
    sendfile = _refused("sendfile")
    sock_accept = _refused("sock_accept")
    sock_connect = _refused("sock_connect")
    sock_recv = _refused("sock_recv")
    sock_recv_into = _refused("sock_recv_into")
    sock_recvfrom = _refused("sock_recvfrom")
    sock_recvfrom_into = _refused("sock_recvfrom_into")
    sock_sendall = _refused("sock_sendall")
    sock_sendfile = _refused("sock_sendfile")
    sock_sendto = _refused("sock_sendto")

    add_reader = _refused("add_reader")
    remove_reader = _refused("remove_reader")
    add_writer = _refused("add_writer")
    remove_writer = _refused("remove_writer")
    connect_read_pipe = _refused("connect_read_pipe")
    connect_write_pipe = _refused("connect_write_pipe")
    subprocess_exec = _refused("subprocess_exec")
    subprocess_shell = _refused("subprocess_shell")
    add_signal_handler = _refused("add_signal_handler")
    remove_signal_handler = _refused("remove_signal_handler")

    set_debug = _refused("set_debug")
    get_task_factory = _refused("get_task_factory")
    set_task_factory = _refused("set_task_factory")
    get_exception_handler = _refused("get_exception_handler")
    set_exception_handler = _refused("set_exception_handler")
    default_exception_handler = _refused("default_exception_handler")


def is_user_code(frame: FrameType) -> bool:
    """Whether `frame` executes neither asyncio nor this package."""
    return not str(frame.f_globals.get("__name__", "")).startswith(("asyncio.", "aiki_push."))


def place_of(frame: FrameType) -> str:
    """`file.py:line` of what `frame` executes now."""
    return f"{PurePath(frame.f_code.co_filename).name}:{frame.f_lineno}"


def _caller() -> tuple[str | None, str]:
    """The function of asyncio that user code called to get here, if it is one, and the place of that call."""
    function, frame = None, inspect.currentframe()
    while frame is not None and not is_user_code(frame):
        if str(frame.f_globals["__name__"]).startswith("asyncio."):
            function = frame.f_code.co_name
        frame = frame.f_back
    return function, place_of(frame) if frame else "outside Python code"
