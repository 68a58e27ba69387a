"""What authors write, in the eyes of mypy --strict and pyright strict: what must pass does, what must not is reported at its line."""

import json
import os
import re
import runpy
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from tests.architecture.source_files import ROOT

SAMPLES = sorted((ROOT / "tests/typing/samples").glob("*.py"))

RIGHT = [sample for sample in SAMPLES if not sample.stem.endswith("_not")]

Place = tuple[str, int]
"""A sample's name, and a line of it."""


def marked(sample: Path) -> set[Place]:
    """The lines that end in `# error`."""
    lines = sample.read_text("utf-8").splitlines()
    return {(sample.name, number) for number, line in enumerate(lines, 1) if re.search(r"# error$", line)}


def copied(samples: Sequence[Path], folder: Path) -> list[str]:
    """The samples without the line that keeps `make check` from reporting what they are there for."""
    for sample in samples:
        text = sample.read_text("utf-8")
        assert text.startswith("# mypy: ignore-errors\n# pyright: strict\n")
        (folder / sample.name).write_text(text.replace("mypy: ignore-errors", "as a user's own file", 1), "utf-8")
    return [sample.name for sample in samples]


def mypy_errors(folder: Path, names: list[str], python: str) -> set[Place]:
    command = ["mypy", "--strict", "--config-file=", "--output=json", "--python-version", python]
    cache = str(ROOT / ".mypy_cache/typing")
    found = _run(folder, [*command, "--python-executable", sys.executable, "--cache-dir", cache, *names])
    return {(error["file"], error["line"]) for error in map(json.loads, found.splitlines()) if error["severity"] == "error"}


def pyright_errors(folder: Path, names: list[str], python: str) -> set[Place]:
    command = ["pyright", "--outputjson", "--pythonversion", python, "--pythonpath", sys.executable]
    found = json.loads(_run(folder, [*command, *names]))["generalDiagnostics"]
    return {(Path(error["file"]).name, error["range"]["start"]["line"] + 1) for error in found}


def _run(folder: Path, command: list[str]) -> str:
    environment = os.environ | {"PYRIGHT_PYTHON_IGNORE_WARNINGS": "1"}
    done = subprocess.run(
        [sys.executable, "-m", *command], cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=240
    )
    assert done.returncode in (0, 1), done.stdout + done.stderr
    return done.stdout


@pytest.mark.timeout(300)
@pytest.mark.parametrize("errors", [mypy_errors, pyright_errors])
@pytest.mark.parametrize("python", ["3.11", "3.12", "3.13"])
def test_what_is_wrong_is_reported_at_its_line_and_nothing_else_is(
    errors: Callable[[Path, list[str], str], set[Place]], python: str, tmp_path: Path
) -> None:
    expected = set[Place]().union(*map(marked, SAMPLES))
    assert {name for name, _ in expected} == {sample.name for sample in SAMPLES if sample not in RIGHT}
    assert errors(tmp_path, copied(SAMPLES, tmp_path), python) == expected


@pytest.mark.parametrize("sample", RIGHT, ids=lambda sample: sample.stem)
def test_what_passes_can_be_run(sample: Path) -> None:
    assert runpy.run_path(str(sample)).keys() >= {"Order", "Run"}
