"""`aiki-push dev`: the server on this machine."""

import logging
import os
from pathlib import Path
from typing import Annotated

import typer

from aiki_push.apps.cli.failing import readable_errors
from aiki_push.apps.devserver.options import DevServerOptions, StoreName

DEFAULT_PORT = 9850

URL_VARIABLE = "AIKI_URL"
"""Where commands look for the server. It is no setting of the server's own."""

LONGEST_WAIT_MS = 2_000
"""One request waits so long for the end of a run, and the server's own end waits for the request."""


def dev(
    port: Annotated[int, typer.Option(help="Port on 127.0.0.1; 0 takes any free one.", min=0, max=65_535)] = DEFAULT_PORT,
    store: Annotated[StoreName, typer.Option(help="moto: DynamoDB, simulated. memory: a dictionary, faster.")] = "moto",
    home: Annotated[Path, typer.Option(help="Folder for the signing keys.")] = Path(".aiki"),
) -> None:
    """Run the whole server in this process: API, hints, offers and sweep. What it stores is gone when it ends."""
    with readable_errors():
        # Here, so that the other commands start without all that a server needs.
        from aiki_push.apps.devserver.dev_server import dev_server
        from aiki_push.apps.environment import load_settings
        from aiki_push.apps.settings import RuntimeSettings

        environ = {name: value for name, value in os.environ.items() if name != URL_VARIABLE}
        settings = load_settings(RuntimeSettings, environ).model_copy(
            update={"allow_loopback_http": True, "max_wait_ms": LONGEST_WAIT_MS}
        )
        logging.basicConfig(level=settings.log_level, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
        with dev_server(settings, DevServerOptions(port, store, home)) as server:
            typer.echo(
                f"aiki-push dev listens on {server.url}, for this machine only; everyone on it may call, no key is asked for"
            )
            typer.echo(
                f"store: {store}, in this process; claims go stale after {settings.limits().claim_idle_timeout_ms} ms of silence"
            )
            typer.echo(f"pushes are signed; endpoints trust: {' '.join(server.public_keys)}")
            server.run()
