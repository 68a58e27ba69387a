"""`aiki-push demo`: the main job, shown and checked."""

import os
import sys
from pathlib import Path

from aiki_push.apps.cli.failing import readable_errors
from aiki_push.domain.errors import SettingsError

DEMO = "examples.order_processing.demo"


def demo() -> None:
    """Process the example's orders while endpoints are killed and frozen, and check that nothing was lost or done twice."""
    with readable_errors():
        if not Path(*DEMO.split(".")).with_suffix(".py").exists():
            raise SettingsError("the demo runs the example in examples/order_processing: call it in the project's own folder")
        # In place of this process, so that a signal reaches the one that has processes to end.
        os.execv(sys.executable, [sys.executable, "-m", DEMO])
