"""`aiki-push openapi`: the API for machines."""

import typer

from aiki_push.adapters.transport.openapi import openapi_text


def openapi() -> None:
    """Print the OpenAPI document of the API."""
    typer.echo(openapi_text(), nl=False)
