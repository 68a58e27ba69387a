"""A socket that listens on this machine only."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager

from aiki_push.domain.errors import SettingsError


@contextmanager
def listen(host: str, port: int) -> Iterator[socket.socket]:
    """A listening socket on `host`; port 0 takes any free one. Raises SettingsError: the port is taken."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP) as listener:
        # asyncio turns Nagle's algorithm off, which costs 40 ms an answer, only on sockets that name their protocol.
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((host, port))
        except OSError as error:
            raise SettingsError(f"port {port} of {host} cannot be used ({error.strerror}); choose another with --port") from error
        listener.listen(128)
        yield listener
