"""What commands that ask a server have in common."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Annotated, TypeVar

import typer
from pydantic import ValidationError

from aiki_push.apps.cli.dev import DEFAULT_PORT, URL_VARIABLE
from aiki_push.apps.connect import Client
from aiki_push.domain.canonical_json import NotJson, parse_json
from aiki_push.domain.errors import SettingsError
from aiki_push.domain.values import Json

R = TypeVar("R")

UrlOption = Annotated[str, typer.Option("--url", envvar=URL_VARIABLE, help="The server.")]
RunIdArgument = Annotated[str, typer.Argument(help="The run's id.")]
DEFAULT_URL = f"http://127.0.0.1:{DEFAULT_PORT}"


def with_client(url: str, use: Callable[[Client], Awaitable[R]]) -> R:
    """What `use` makes of a client of the server at `url`."""

    async def main() -> R:
        client = Client(url=url)
        try:
            return await use(client)
        finally:
            await client.close()

    return asyncio.run(main())


def operation(kind: Callable[..., R], fields: dict[str, Json]) -> R:
    """The request with these fields. Raises SettingsError for the first field at fault, naming it."""
    try:
        return kind(**fields)
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        raise SettingsError(f"{'.'.join(map(str, first['loc']))}: {first['msg']}") from None


def json_of(text: str, option: str) -> Json:
    """The JSON that an option was given: itself, or in the file that `@FILE` names. Raises SettingsError, naming the option."""
    try:
        return parse_json(Path(text[1:]).read_bytes() if text.startswith("@") else text, at=option)
    except (OSError, NotJson) as error:
        raise SettingsError(f"{option} cannot be read: {error}") from None
