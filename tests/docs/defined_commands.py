"""The commands of `aiki-push`, as they are defined."""

from collections.abc import Iterator
from dataclasses import dataclass

import typer

from aiki_push.apps.cli.main import app


@dataclass(frozen=True, slots=True)
class Command:
    """`name` is its words, like `runs start`; `options` are long ones, without `--help`; `variables` those of the environment."""

    name: str
    options: frozenset[str]
    variables: frozenset[str]


def commands(group: object = None, path: tuple[str, ...] = ()) -> Iterator[Command]:
    """Every command that does something, in the order of the help."""
    command = group or typer.main.get_command(app)
    if isinstance(command, typer.core.TyperGroup):
        for name, inner in command.commands.items():
            yield from commands(inner, (*path, name))
    elif isinstance(command, typer.core.TyperCommand):
        options = [option for option in command.params if isinstance(option, typer.core.TyperOption)]
        variables = [variable for option in options if isinstance(variable := option.envvar, str)]
        yield Command(" ".join(path), frozenset(name for option in options for name in option.opts), frozenset(variables))
