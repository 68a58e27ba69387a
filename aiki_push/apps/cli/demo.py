"""`aiki-push demo`: the main job, shown and checked."""

import subprocess
import sys
from pathlib import Path

import typer

from aiki_push.apps.cli.failing import readable_errors
from aiki_push.domain.errors import SettingsError

DEMO = "examples.order_processing.demo"


def demo() -> None:
    """Process the example's orders while endpoints are killed and frozen, and check that nothing was lost or done twice."""
    with readable_errors():
        if not Path(*DEMO.split(".")).with_suffix(".py").exists():
            raise SettingsError("the demo runs the example in examples/order_processing: call it in the project's own folder")
        raise typer.Exit(subprocess.run([sys.executable, "-m", DEMO], check=False).returncode)
