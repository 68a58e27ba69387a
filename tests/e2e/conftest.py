"""Processes for one test, in a folder of its own."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.processes import Processes, processes_in
from tests.e2e.stage import Stage


@pytest.fixture
def processes(tmp_path: Path) -> Iterator[Processes]:
    with processes_in(tmp_path) as started:
        yield started


@pytest.fixture
def stage(processes: Processes) -> Stage:
    return Stage(processes.folder)
