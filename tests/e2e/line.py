"""The line between an executor and the server: it remembers what passes, and can be cut."""

import json
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Lock, Thread
from urllib.parse import urlsplit

_HOST = "127.0.0.1"
_UPSTREAM_TIMEOUT_S = 90


@dataclass(frozen=True, slots=True)
class Exchange:
    """A request that reached the server, and its answer. `code` is that of a problem document, None for any other answer."""

    method: str
    path: str
    body: bytes
    status: int
    code: str | None


@dataclass(slots=True)
class Line:
    """A forwarding HTTP server. A request whose path `is_dropped` never arrives: its connection ends without an answer.

    An exchange that `is_unheard` reaches the server, and its answer gets lost.
    `asked` has the path of every request, `exchanges` those that were answered.
    """

    upstream: tuple[str, int]
    listener: socket.socket
    is_dropped: Callable[[str], bool] = lambda _: False
    is_unheard: Callable[[Exchange], bool] = lambda _: False
    asked: list[str] = field(default_factory=list)
    exchanges: list[Exchange] = field(default_factory=list)
    connections: set[socket.socket] = field(default_factory=set)
    lock: Lock = field(default_factory=Lock)
    _forwarder: "_Forwarder | None" = None

    @property
    def port(self) -> int:
        port: int = self.listener.getsockname()[1]
        return port

    @property
    def url(self) -> str:
        """Where the server seems to be."""
        return f"http://{_HOST}:{self.port}"

    def come_up(self) -> None:
        """Take connections from now on."""
        self.listener.listen()
        self._forwarder = _Forwarder(self)
        Thread(target=self._forwarder.serve_forever, args=(0.05,), daemon=True).start()

    def go_down(self) -> None:
        """End every connection and refuse new ones, as a machine does whose server process has died."""
        if self._forwarder is None:
            return
        self._forwarder.shutdown()
        port = self.port
        self._forwarder.server_close()
        self._forwarder = None
        # Bound and not listening: the port stays ours, and whoever connects is refused.
        self.listener = _bound(port)
        with self.lock:
            for connection in self.connections:
                with suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)

    def refusals(self, path_end: str) -> list[Exchange]:
        """The requests of this kind that the server answered with a problem, the earliest first."""
        return [one for one in self.exchanges if one.code is not None and one.path.endswith(path_end)]


@contextmanager
def line_to(server_url: str) -> Iterator[Line]:
    """A line to the server, up until the context ends."""
    server = urlsplit(server_url)
    line = Line((server.hostname or "", server.port or 0), _bound(0))
    try:
        line.come_up()
        yield line
    finally:
        line.go_down()
        line.listener.close()


def _bound(port: int) -> socket.socket:
    found = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    found.bind((_HOST, port))
    return found


class _Forwarder(ThreadingHTTPServer):
    def __init__(self, line: Line) -> None:
        super().__init__((_HOST, line.port), _Conversation, bind_and_activate=False)
        self.socket.close()
        self.socket = line.listener
        self.line = line

    def handle_error(self, request: object, client_address: object) -> None:
        """Either side hung up."""


class _Conversation(BaseHTTPRequestHandler):
    """One connection of the executor's, with one of its own to the server for each request."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1
    server: _Forwarder

    def setup(self) -> None:
        super().setup()
        with self.server.line.lock:
            self.server.line.connections.add(self.connection)

    def finish(self) -> None:
        with self.server.line.lock:
            self.server.line.connections.discard(self.connection)
        super().finish()

    def forward(self) -> None:
        line = self.server.line
        body = self.rfile.read(int(self.headers.get("content-length", "0")))
        line.asked.append(self.path)
        if line.is_dropped(self.path):
            self.close_connection = True
            return
        upstream = HTTPConnection(*line.upstream, timeout=_UPSTREAM_TIMEOUT_S)
        try:
            upstream.request(self.command, self.path, body, dict(self.headers.items()))
            answer = upstream.getresponse()
            content = answer.read()
        finally:
            upstream.close()
        exchange = Exchange(self.command, self.path, body, answer.status, _code(answer.status, content))
        line.exchanges.append(exchange)
        if line.is_unheard(exchange):
            self.close_connection = True
            return
        self.send_response(answer.status)
        self.send_header("content-type", answer.headers.get("content-type", ""))
        self.send_header("content-length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    do_GET = do_POST = do_PUT = do_DELETE = forward  # noqa: N815 - the base class looks for these names

    def log_message(self, format: str, *arguments: object) -> None:  # noqa: A002 - the base class names it so
        """Nothing: what passed is in `exchanges`."""


def _code(status: int, content: bytes) -> str | None:
    return None if status == 200 else str(json.loads(content)["code"])
