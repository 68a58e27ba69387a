"""An endpoint in a process of its own, for local use."""

import uvicorn

from aiki_push.apps.endpoint.endpoint import Endpoint

GRACE_S = 5


def serve(endpoint: Endpoint, *, port: int, host: str = "127.0.0.1") -> None:
    """Answer pushes at `http://{host}:{port}/` until the process is told to end (SIGTERM, SIGINT).

    Segments then get about ten seconds to end; a second signal ends them at once. Nothing is logged for an ordinary request.
    """
    uvicorn.run(
        endpoint.asgi,
        host=host,
        port=port,
        log_level="warning",
        access_log=False,
        server_header=False,
        lifespan="on",
        ws="none",
        timeout_graceful_shutdown=GRACE_S,
    )
