"""`aiki-push keys`: the keys that sign pushes, in a file."""

from pathlib import Path
from typing import Annotated

import typer

from aiki_push.adapters.signing.key_file import KeyFile
from aiki_push.adapters.system import SystemClock, SystemEntropy
from aiki_push.apps.cli.failing import readable_errors
from aiki_push.apps.folders import make_folder

app = typer.Typer(help="The keys that sign pushes.", no_args_is_help=True)

FileOption = Annotated[Path, typer.Option("--file", help="The key file.")]
DEFAULT_FILE = Path(".aiki/signing-keys.json")


def _key_file(file: Path) -> KeyFile:
    return KeyFile(file, SystemClock(), SystemEntropy())


@app.command()
def init(file: FileOption = DEFAULT_FILE) -> None:
    """Make the file with one new key, and print its public key."""
    with readable_errors():
        make_folder(file.parent)
        typer.echo(_key_file(file).init())


@app.command()
def show(file: FileOption = DEFAULT_FILE) -> None:
    """Print the public keys that sign now, the newest first."""
    with readable_errors():
        for key in _key_file(file).read().public_keys():
            typer.echo(key)


@app.command()
def rotate(file: FileOption = DEFAULT_FILE) -> None:
    """Add a new key and print its public key; the keys before it go on signing until they are retired."""
    with readable_errors():
        typer.echo(_key_file(file).rotate())


@app.command()
def retire(file: FileOption = DEFAULT_FILE) -> None:
    """Stop signing with every key but the newest, once all endpoints trust that one; print the public keys dropped."""
    with readable_errors():
        for key in _key_file(file).retire():
            typer.echo(key)
