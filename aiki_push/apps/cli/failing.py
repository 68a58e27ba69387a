"""Errors as a person at a terminal should see them: one line, no traceback, exit code 1 (or 2 for wrong settings)."""

from collections.abc import Iterator
from contextlib import contextmanager

import typer

from aiki_push.apps.missing_libraries import explained
from aiki_push.domain.errors import AikiError, SettingsError


@contextmanager
def readable_errors() -> Iterator[None]:
    """Turn our errors, and libraries that are not installed, into one line on stderr."""
    try:
        yield
    except ModuleNotFoundError as error:
        typer.echo(f"aiki-push: {explained(error, extra='dev')}", err=True)
        raise typer.Exit(2) from error
    except AikiError as error:
        typer.echo(f"aiki-push: {error}", err=True)
        raise typer.Exit(2 if isinstance(error, SettingsError) else 1) from error
