"""The command line and a server on loopback, in this process."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Thread

import uvicorn
from typer.testing import CliRunner

from aiki_push.adapters.transport.asgi_api import asgi_api
from aiki_push.adapters.transport.wire import Wire
from aiki_push.apps.cli.main import app
from tests.local_system import NAMESPACE, LocalSystem


@contextmanager
def serving(system: LocalSystem) -> Iterator[str]:
    """The URL of the system's API, served by a thread of this process."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        wire = Wire(system.server, namespace=NAMESPACE, entropy=system.entropy)
        server = uvicorn.Server(uvicorn.Config(asgi_api(wire), log_config=None, lifespan="on", ws="none"))
        thread = Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join()


def aiki_push(*arguments: str) -> tuple[int, str, str]:
    """Exit code, output and errors of the command."""
    result = CliRunner().invoke(app, arguments)
    return result.exit_code, result.stdout, result.stderr
