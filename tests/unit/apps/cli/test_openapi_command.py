"""`aiki-push openapi`."""

from typer.testing import CliRunner

from aiki_push.adapters.transport.openapi import openapi_text
from aiki_push.apps.cli.main import app


def test_the_command_prints_the_document_and_nothing_else() -> None:
    result = CliRunner().invoke(app, ["openapi"])
    assert (result.exit_code, result.stdout, result.stderr) == (0, openapi_text(), "")
