"""`aiki-push runs`: start a run, look at one, control one."""

from collections.abc import Callable
from typing import Annotated

import typer
from rich.console import Console

from aiki_push.apps.cli.failing import readable_errors
from aiki_push.apps.cli.requests import DEFAULT_URL, RunIdArgument, UrlOption, json_of, operation, with_client
from aiki_push.apps.cli.timeline import timeline, timeline_table
from aiki_push.apps.cli.waiting import waiting_lines
from aiki_push.apps.connect import Client
from aiki_push.domain.canonical_json import compact_json
from aiki_push.domain.ids import token_text, ulid
from aiki_push.domain.values import DEFAULT_PRIORITY, Inline, Json
from aiki_push.ports.api.controls import CancelRun, PauseRun, ResumeRun, WakeUpRun
from aiki_push.ports.api.operation import Operation
from aiki_push.ports.api.runs import GetRun, RunView, StartRun
from aiki_push.sdk.run_handle import Handle
from aiki_push.sdk.types.json_type import JsonType

app = typer.Typer(help="Start runs, look at them, control them.", no_args_is_help=True)


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
            request["input"] = json_of(given, "--input")
        view = with_client(url, lambda client: _start(client, request, wait=wait))
        if wait:
            _show_end(view)


@app.command()
def show(run_id: RunIdArgument, url: UrlOption = DEFAULT_URL) -> None:
    """Print where the run stands, and its timeline."""
    with readable_errors():
        with_client(url, lambda client: _show(client, operation(GetRun, {"run_id": run_id})))


@app.command()
def pause(run_id: RunIdArgument, url: UrlOption = DEFAULT_URL) -> None:
    """Stop a run until it is resumed, and print its state."""
    _control(url, PauseRun, run_id)


@app.command()
def resume(run_id: RunIdArgument, url: UrlOption = DEFAULT_URL) -> None:
    """Let a paused run go on where it was, and print its state."""
    _control(url, ResumeRun, run_id)


@app.command()
def cancel(
    run_id: RunIdArgument,
    explanation: Annotated[str | None, typer.Option(help="Why, for whoever waits for the run.")] = None,
    url: UrlOption = DEFAULT_URL,
) -> None:
    """End a run and the runs that it has started, and print its state."""
    _control(url, CancelRun, run_id, explanation=explanation)


@app.command()
def wakeup(
    run_id: RunIdArgument,
    sleep: Annotated[str | None, typer.Option(help="Sleeps of this name only.")] = None,
    url: UrlOption = DEFAULT_URL,
) -> None:
    """End the sleeps that a run is in, and print its state."""
    _control(url, WakeUpRun, run_id, sleep=sleep)


def _control(url: str, kind: Callable[..., Operation[RunView]], run_id: str, **fields: Json) -> None:
    async def control(client: Client) -> RunView:
        operation_id = token_text(client.entropy.token(15))
        return await client.api.call(operation(kind, {"run_id": run_id, "operation_id": operation_id, **fields}))

    with readable_errors():
        view = with_client(url, control)
        typer.echo(f"run {view.id} is {view.state.status}" + (f"; {_directive_of(view)}" if view.directive else ""))


def _directive_of(run: RunView) -> str:
    return f"its executor is to {run.directive.action} it at once" if run.directive else ""


async def _start(client: Client, request: dict[str, Json], *, wait: bool) -> RunView:
    run_id = ulid(client.clock.now(), client.entropy.token(10))
    view = await client.api.call(operation(StartRun, {"run_id": run_id, **request}))
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
    if run.directive:
        console.print(_directive_of(run))
    if run.offer.attempts and run.state.status == "queued":
        console.print(
            f"offered {run.offer.attempts} times" + (f"; the last: {run.offer.last_error}" if run.offer.last_error else "")
        )
    for line in waiting_lines(run.waits, records):
        console.print(line, highlight=False)
    console.print(timeline_table("", timeline(records)))


def _show_end(run: RunView) -> None:
    if run.state.status != "completed":
        told = run.explanation or (f"{run.error.name}: {run.error.message}" if run.error else "")
        typer.echo(f"{run.state.status}: {told}", err=True)
        raise typer.Exit(1)
    typer.echo(compact_json(run.output.value if isinstance(run.output, Inline) else None))
