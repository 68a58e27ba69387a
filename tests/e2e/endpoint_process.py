"""An endpoint in a process of its own: `python -m tests.e2e.endpoint_process`. It prints the URL at which it is about to listen."""

import logging
import os
import socket

from aiki_push import Client, endpoint
from aiki_push.apps.endpoint.endpoint import EndpointConfig
from aiki_push.apps.endpoint.serve import serve
from tests.e2e import waiting


def main() -> None:
    """Serve until told to end."""
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(name)s: %(message)s")
    logging.getLogger("aiki_push").setLevel(logging.INFO)
    served = endpoint(
        workflows=waiting.ALL,
        client=Client(url=os.environ["E2E_SERVER_URL"]),
        public_keys=os.environ["E2E_PUBLIC_KEYS"].split(),
        config=EndpointConfig(claim_refresh_interval_ms=int(os.environ["E2E_REFRESH_MS"])),
        name=os.environ["E2E_EXECUTOR"],
    )
    # Chosen here, a moment before it is used, so that hardly anybody else can take it.
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
    print(f"endpoint at http://127.0.0.1:{port}/", flush=True)
    serve(served, port=port)


if __name__ == "__main__":
    main()
