"""`python -m aiki_push.apps.cli` is `aiki-push`."""

from aiki_push.apps.cli.main import app

app()
