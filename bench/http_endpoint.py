"""The endpoint that is measured, in a process of its own: `python -m bench.http_endpoint URL PUBLIC_KEY PORT`."""

import sys

from aiki_push import Client, endpoint
from aiki_push.apps.endpoint.endpoint import EndpointConfig
from aiki_push.apps.endpoint.serve import serve
from bench.workflows import ALL


def main() -> None:
    """Serve until told to end. Whatever waits parks at once, so that what follows is a replay."""
    url, public_key, port = sys.argv[1:]
    config = EndpointConfig(max_inline_wait_ms=0)
    serve(endpoint(workflows=ALL, client=Client(url=url), public_keys=[public_key], config=config), port=int(port))


if __name__ == "__main__":
    main()
