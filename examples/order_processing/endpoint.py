"""Executes orders in a process of its own: `python -m examples.order_processing.endpoint`.

ORDERS_SERVER_URL: the server, such as http://127.0.0.1:9850.
ORDERS_PUBLIC_KEYS: the server's public keys, `whpk_…`, with spaces between them.
ORDERS_AUDIENCE: as it was registered for this endpoint; leave it out if it was not.
ORDERS_CLAIM_REFRESH_INTERVAL_MS: 30000, or less for a server whose claims go stale sooner.
ORDERS_NAME: what the executor is called in histories; by default host and process.
ORDERS_PORT: where it listens on this machine; 8801.
ORDERS_FOLDER, ORDERS_WORK_MS: for the tasks, see `settings.py`.
"""

import logging
import os
import sys

from aiki_push import Client, endpoint
from aiki_push.apps.endpoint.endpoint import Endpoint, EndpointConfig
from aiki_push.apps.endpoint.serve import serve
from aiki_push.errors import SettingsError
from examples.order_processing.settings import text, whole_number, work_s
from examples.order_processing.workflow import order_v1


def order_endpoint() -> Endpoint:
    """An endpoint for the workflow. Raises SettingsError, naming the variable that is missing or wrong."""
    work_s()  # a wrong value should stop the start, not the first task
    refresh_ms = whole_number("ORDERS_CLAIM_REFRESH_INTERVAL_MS", default=30_000, at_least=1, at_most=600_000)
    return endpoint(
        workflows=[order_v1],
        client=Client(url=text("ORDERS_SERVER_URL")),
        public_keys=text("ORDERS_PUBLIC_KEYS").split(),
        audience=os.environ.get("ORDERS_AUDIENCE") or None,
        config=EndpointConfig(claim_refresh_interval_ms=refresh_ms),
        name=os.environ.get("ORDERS_NAME") or None,
    )


def main() -> None:
    """Serve until told to end."""
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(name)s: %(message)s")
    logging.getLogger("aiki_push").setLevel(logging.INFO)
    try:
        serve(order_endpoint(), port=whole_number("ORDERS_PORT", default=8801, at_most=65_535))
    except SettingsError as error:
        sys.exit(f"order endpoint: {error}")


if __name__ == "__main__":
    main()
