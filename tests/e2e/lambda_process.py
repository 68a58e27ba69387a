"""A Lambda function behind an HTTP API, in a process of its own: `python -m tests.e2e.lambda_process`.

One invocation at a time, as in one execution environment. One that has not ended in time is the end of the process.
"""

import json
import logging
import os
import signal
from contextlib import suppress
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, HTTPServer

from aiki_push import Client, endpoint
from aiki_push.adapters.system import SystemClock
from aiki_push.apps.endpoint.endpoint import EndpointConfig
from tests.e2e import waiting
from tests.unit.apps.endpoint.lambda_events import http_api

CLOCK = SystemClock()
INVOCATION_MS = 6_000


@dataclass(frozen=True, slots=True)
class Context:
    """What Lambda tells its handler about the invocation."""

    ends_at_ms: float

    def get_remaining_time_in_millis(self) -> int:
        """As the real one, it may be asked at any time."""
        return int(self.ends_at_ms - CLOCK.monotonic_ms())


def main() -> None:
    """Take pushes until told to end."""
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(name)s: %(message)s")
    served = endpoint(
        workflows=waiting.ALL,
        client=Client(url=os.environ["E2E_SERVER_URL"]),
        public_keys=os.environ["E2E_PUBLIC_KEYS"].split(),
        config=EndpointConfig(claim_refresh_interval_ms=int(os.environ["E2E_REFRESH_MS"]), deadline_margin_ms=2_000),
        name=os.environ["E2E_EXECUTOR"],
    )

    class Invocations(BaseHTTPRequestHandler):
        def do_POST(self) -> None:  # noqa: N802 - the base class looks for this name
            body = self.rfile.read(int(self.headers.get("content-length", "0")))
            signal.setitimer(signal.ITIMER_REAL, INVOCATION_MS / 1_000)  # whose signal ends the process
            answer = served.lambda_handler(
                http_api(dict(self.headers.items()), body), Context(CLOCK.monotonic_ms() + INVOCATION_MS)
            )
            signal.setitimer(signal.ITIMER_REAL, 0)
            print(f"invocation: {json.loads(answer['body'])}", flush=True)
            with suppress(OSError):  # the server does not wait for so long
                self.send_response(answer["statusCode"])
                self.end_headers()
                self.wfile.write(answer["body"].encode())

        def log_message(self, format: str, *arguments: object) -> None:  # noqa: A002 - the base class names it so
            """Nothing: the outcome is printed."""

    with HTTPServer(("127.0.0.1", 0), Invocations) as server:
        print(f"endpoint at http://127.0.0.1:{server.server_address[1]}/", flush=True)
        server.serve_forever()


if __name__ == "__main__":
    main()
