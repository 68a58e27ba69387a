"""The built wheel, and virtual environments that have nothing but it and what it asks for."""

import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.architecture.source_files import ROOT

INSTALL_TIMEOUT_S = 240

CONSTRAINTS = str(ROOT / "constraints.txt")
PIP = {"PIP_DISABLE_PIP_VERSION_CHECK": "1", "PIP_CONSTRAINT": CONSTRAINTS}


@dataclass(frozen=True, slots=True)
class Environment:
    """A virtual environment; nothing of this process's own reaches what runs in it, least of all the project's folder."""

    folder: Path

    def run(self, command: str, *arguments: str, given: str = "", **environment: str) -> "subprocess.CompletedProcess[str]":
        """One of its commands, in its own folder."""
        variables = {"PATH": os.environ["PATH"], "HOME": str(self.folder), **environment}
        return subprocess.run(
            [self.folder / "bin" / command, *arguments],
            cwd=self.folder,
            env=variables,
            input=given,
            capture_output=True,
            text=True,
            timeout=INSTALL_TIMEOUT_S,
            check=False,
        )

    def install(self, *requirements: str) -> None:
        """With pip, from the index that pip is configured for."""
        run([str(self.folder / "bin" / "python"), "-m", "pip", "install", "--quiet", *requirements], PIP)

    def packages(self) -> set[str]:
        """The names of all that is installed, pip apart."""
        listed = self.run("python", "-m", "pip", "list", "--format=freeze", **PIP).stdout
        return {line.partition("==")[0].lower().replace("_", "-") for line in listed.splitlines()} - {"pip", "setuptools"}


def build_wheel(folder: Path) -> Path:
    """The wheel of the project as it is now."""
    run([sys.executable, "-m", "build", "--wheel", "--outdir", str(folder), str(ROOT)], PIP)
    [wheel] = folder.glob("*.whl")
    return wheel


def make_environment(folder: Path) -> Environment:
    """A new one, with pip alone."""
    run([sys.executable, "-m", "venv", str(folder)], {})
    return Environment(folder)


def run(command: list[str], environment: Mapping[str, str]) -> None:
    """Run to the end, which must be a good one."""
    ended = subprocess.run(
        command, env={**os.environ, **environment}, capture_output=True, text=True, timeout=INSTALL_TIMEOUT_S, check=False
    )
    assert ended.returncode == 0, f"{command} failed:\n{ended.stdout}\n{ended.stderr}"
