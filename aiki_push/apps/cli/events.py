"""`aiki-push events`: tell a run something."""

from typing import Annotated

import typer

from aiki_push.apps.cli.failing import readable_errors
from aiki_push.apps.cli.requests import DEFAULT_URL, RunIdArgument, UrlOption, json_of, operation, with_client
from aiki_push.apps.connect import Client
from aiki_push.domain.ids import token_text
from aiki_push.domain.values import Json
from aiki_push.ports.api.events import EventSent, SendEvent

app = typer.Typer(help="Send events to runs.", no_args_is_help=True)


@app.command()
def send(
    run_id: RunIdArgument,
    event: Annotated[str, typer.Argument(help="The event's name.")],
    data: Annotated[str | None, typer.Option(help="JSON, or @FILE with JSON; left out: an event without data.")] = None,
    reference: Annotated[
        str | None, typer.Option(help="Sent again with it, the event is the same one: the run gets it once.")
    ] = None,
    url: UrlOption = DEFAULT_URL,
) -> None:
    """Send an event to a run, which finds it when it asks for it. Exit code 1 where the run has ended."""
    with readable_errors():
        request: dict[str, Json] = {"run_id": run_id, "event": event}
        if data is not None:
            request["data"] = json_of(data, "--data")
        if with_client(url, lambda client: _send(client, request, reference)).delivered:
            typer.echo(f"event {event} was delivered to run {run_id}")
            return
        typer.echo(f"aiki-push: run {run_id} has ended: it takes no more events", err=True)
        raise typer.Exit(1)


async def _send(client: Client, request: dict[str, Json], reference: str | None) -> EventSent:
    # With a reference of its own, a request that is repeated because its answer was lost is one event all the same.
    own = token_text(client.entropy.token(15)) if reference is None else reference
    return await client.api.call(operation(SendEvent, {**request, "reference": own}))
