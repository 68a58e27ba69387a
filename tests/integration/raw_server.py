"""A server on loopback that does to each request what it is told to, down to the TCP connection."""

import socket
import ssl
import struct
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from typing import BinaryIO, TypeAlias


@dataclass(frozen=True)
class Received:
    """A request as it came over the wire; header names are lower-case. `connection` counts from 1."""

    connection: int
    line: str
    headers: Sequence[tuple[str, str]]
    body: bytes

    def header(self, name: str) -> str:
        [value] = [value for given, value in self.headers if given == name]
        return value


Behaviour: TypeAlias = Callable[[socket.socket], bool]
"""What to do after a request has been read; True keeps the connection for the next one."""


@dataclass
class RawServer:
    """Behaves to the first request as the first behaviour says, and so on; the last one is for all that follow."""

    url: str
    behaviours: deque[Behaviour]
    tls: ssl.SSLContext | None = None
    received: list[Received] = field(default_factory=list)
    connections: list[socket.socket] = field(default_factory=list)
    threads: list[threading.Thread] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def accept(self, listener: socket.socket) -> None:
        with suppress(OSError):
            while True:
                connection, _ = listener.accept()
                self.connections.append(connection)
                thread = threading.Thread(target=self._converse, args=(connection, len(self.connections)))
                self.threads.append(thread)
                thread.start()

    def _converse(self, connection: socket.socket, number: int) -> None:
        with suppress(OSError), ExitStack() as stack:
            if self.tls:
                connection = stack.enter_context(self.tls.wrap_socket(connection, server_side=True))
            reader = stack.enter_context(connection.makefile("rb"))
            while request := _read(reader, number):
                with self.lock:
                    self.received.append(request)
                    behaviour = self.behaviours.popleft() if len(self.behaviours) > 1 else self.behaviours[0]
                if not behaviour(connection):
                    break
        connection.close()


def _read(reader: BinaryIO, number: int) -> Received | None:
    line = reader.readline().decode("latin-1").strip()
    if not line:
        return None
    headers: list[tuple[str, str]] = []
    while pair := reader.readline().decode("latin-1").strip():
        name, _, value = pair.partition(":")
        headers.append((name.lower(), value.strip()))
    size = int(dict(headers).get("content-length", "0"))
    return Received(number, line, tuple(headers), reader.read(size))


@contextmanager
def raw_server(*behaviours: Behaviour, tls: ssl.SSLContext | None = None) -> Iterator[RawServer]:
    """Listens until the context ends, and then cuts every connection."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        scheme = "https" if tls else "http"
        server = RawServer(f"{scheme}://127.0.0.1:{listener.getsockname()[1]}/push", deque(behaviours), tls)
        accepting = threading.Thread(target=server.accept, args=(listener,))
        accepting.start()
        try:
            yield server
        finally:
            listener.shutdown(socket.SHUT_RDWR)  # wakes the thread in `accept`; closing alone does not
            accepting.join()
            for connection in server.connections:
                with suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)
            for thread in server.threads:
                thread.join()


def head(status: int, *headers: str, length: int = 0) -> bytes:
    lines = [f"HTTP/1.1 {status} Whatever", f"content-length: {length}", *headers, "", ""]
    return "\r\n".join(lines).encode()


def answer(status: int, *headers: str, body: bytes = b"") -> Behaviour:
    """A whole answer; the connection stays open."""
    return sends(head(status, *headers, length=len(body)) + body)


def sends(text: bytes) -> Behaviour:
    """These bytes, and nothing after them; the connection stays open."""

    def behave(connection: socket.socket) -> bool:
        connection.sendall(text)
        return True

    return behave


def closes(text: bytes = b"") -> Behaviour:
    """These bytes, and the end of the connection in the ordinary way."""

    def behave(connection: socket.socket) -> bool:
        connection.sendall(text)
        return False

    return behave


def half_closes(text: bytes = b"") -> Behaviour:
    """These bytes, and no more from this side; the other side may still send."""

    def behave(connection: socket.socket) -> bool:
        connection.sendall(text)
        connection.shutdown(socket.SHUT_WR)
        return True

    return behave


def resets(text: bytes = b"") -> Behaviour:
    """These bytes, and a TCP reset."""

    def behave(connection: socket.socket) -> bool:
        connection.sendall(text)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        # The file of the reading side would keep the connection open.
        socket.close(connection.detach())
        return False

    return behave


def is_silent(connection: socket.socket) -> bool:
    """Nothing at all, with the connection open."""
    assert connection.fileno() >= 0
    return True
