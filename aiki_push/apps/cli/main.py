"""`aiki-push`: every command of the command line."""

import typer

from aiki_push.apps.cli import demo, dev, events, keys, openapi, runs

app = typer.Typer(
    name="aiki-push", help="Durable workflows on AWS serverless.", no_args_is_help=True, pretty_exceptions_enable=False
)
app.command("dev")(dev.dev)
app.command("demo")(demo.demo)
app.command("openapi")(openapi.openapi)
app.add_typer(runs.app, name="runs")
app.add_typer(events.app, name="events")
app.add_typer(keys.app, name="keys")
