"""`aiki-push`, called as from a terminal."""

import os
import subprocess
from dataclasses import dataclass

from tests.architecture.source_files import ROOT
from tests.e2e.processes import PATIENCE_S
from tests.e2e.system import AIKI_PUSH

WIDE = "200"
"""Columns of the terminal: wide enough for no line to be broken."""


@dataclass(frozen=True, slots=True)
class Ended:
    """What a command printed, and its exit code."""

    code: int
    printed: str
    errors: str


def aiki_push(*arguments: str, **environment: str) -> Ended:
    """Run the command to its end."""
    ended = subprocess.run(
        [AIKI_PUSH, *arguments],
        cwd=ROOT,
        env={**os.environ, "COLUMNS": WIDE, **environment},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    return Ended(ended.returncode, ended.stdout, ended.stderr)
