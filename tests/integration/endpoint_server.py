"""An endpoint behind a real HTTP server on loopback, in a thread of its own."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import uvicorn

from aiki_push.apps.endpoint.asgi import AsgiDoor


@contextmanager
def endpoint_server(app: AsgiDoor) -> Iterator[str]:
    """The URL of `app`, which is served until the context ends, when its segments have ended too."""
    # The protocol is named so that asyncio turns off Nagle's algorithm, as it does for sockets that it opens itself.
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP) as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        config = uvicorn.Config(app, log_config=None, access_log=False, lifespan="on", ws="none")
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, args=([listener],))
        thread.start()
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}/prod/push"
        finally:
            server.should_exit = True
            thread.join()
