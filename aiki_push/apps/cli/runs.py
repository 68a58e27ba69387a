"""`aiki-push runs`: start a run, look at one."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Annotated, TypeVar

import typer
from pydantic import ValidationError
from rich.console import Console

from aiki_push.apps.cli.dev import DEFAULT_PORT, URL_VARIABLE
from aiki_push.apps.cli.failing import readable_errors
from aiki_push.apps.cli.timeline import timeline, timeline_table
from aiki_push.apps.connect import Client
from aiki_push.domain.canonical_json import NotJson, compact_json, parse_json
from aiki_push.domain.errors import SettingsError
from aiki_push.domain.ids import ulid
from aiki_push.domain.values import DEFAULT_PRIORITY, Inline, Json
from aiki_push.ports.api.runs import GetRun, RunView, StartRun
from aiki_push.sdk.run_handle import Handle
from aiki_push.sdk.types.json_type import JsonType

R = TypeVar("R")

app = typer.Typer(help="Start runs and look at them.", no_args_is_help=True)

UrlOption = Annotated[str, typer.Option("--url", envvar=URL_VARIABLE, help="The server.")]
DEFAULT_URL = f"http://127.0.0.1:{DEFAULT_PORT}"


@app.command()
def start(
    workflow: Annotated[str, typer.Argument(help="The workflow's name.")],
    version: Annotated[str, typer.Argument(help="Its version.")],
    given: Annotated[str | None, typer.Option("--input", help="JSON, or @FILE with JSON; left out: no input.")] = None,
    pool: Annotated[str | None, typer.Option(help="Executors of this pool only.")] = None,
    priority: Annotated[int, typer.Option(min=0, max=9, help="0 goes first.")] = DEFAULT_PRIORITY,
    wait: Annotated[bool, typer.Option(help="Wait for the end and print the output.")] = False,
    url: UrlOption = DEFAULT_URL,
) -> None:
    """Start a run and print its id; with --wait its output. Exit code 1 unless it completed."""
    with readable_errors():
        request: dict[str, Json] = {"workflow": workflow, "version": version, "options": {"pool": pool, "priority": priority}}
        if given is not None:
            request["input"] = _json(given)
        view = _run(url, lambda client: _start(client, request, wait=wait))
        if wait:
            _show_end(view)


@app.command()
def show(run_id: Annotated[str, typer.Argument(help="The run's id.")], url: UrlOption = DEFAULT_URL) -> None:
    """Print where the run stands, and its timeline."""
    with readable_errors():
        _run(url, lambda client: _show(client, _operation(GetRun, {"run_id": run_id})))


async def _start(client: Client, request: dict[str, Json], *, wait: bool) -> RunView:
    run_id = ulid(client.clock.now(), client.entropy.token(10))
    view = await client.api.call(_operation(StartRun, {"run_id": run_id, **request}))
    typer.echo(view.id)
    if not wait:
        return view
    handle = Handle(client, view, JsonType[object](object, at="output"))
    await handle.wait()
    return handle.run


async def _show(client: Client, request: GetRun) -> None:
    run = await client.api.call(request)
    records = [entry.record async for entry in Handle(client, run, JsonType[object](object, at="output")).history()]
    console = Console()
    console.print(f"run {run.id}: {run.workflow} {run.version} is [bold]{run.state.status}[/bold] at revision {run.revision}")
    if run.offer.attempts and run.state.status == "queued":
        console.print(
            f"offered {run.offer.attempts} times" + (f"; the last: {run.offer.last_error}" if run.offer.last_error else "")
        )
    console.print(timeline_table("", timeline(records)))


def _show_end(run: RunView) -> None:
    if run.state.status != "completed":
        told = run.explanation or (f"{run.error.name}: {run.error.message}" if run.error else "")
        typer.echo(f"{run.state.status}: {told}", err=True)
        raise typer.Exit(1)
    typer.echo(compact_json(run.output.value if isinstance(run.output, Inline) else None))


def _run(url: str, use: Callable[[Client], Awaitable[R]]) -> R:
    async def main() -> R:
        client = Client(url=url)
        try:
            return await use(client)
        finally:
            await client.close()

    return asyncio.run(main())


def _operation(kind: Callable[..., R], fields: dict[str, Json]) -> R:
    try:
        return kind(**fields)
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        raise SettingsError(f"{'.'.join(map(str, first['loc']))}: {first['msg']}") from None


def _json(text: str) -> Json:
    try:
        return parse_json(Path(text[1:]).read_bytes() if text.startswith("@") else text, at="--input")
    except (OSError, NotJson) as error:
        raise SettingsError(f"--input cannot be read: {error}") from None
