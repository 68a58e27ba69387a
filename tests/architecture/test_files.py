"""Size and names of files."""

from collections.abc import Sequence
from pathlib import PurePosixPath

import pytest

from tests.architecture.source_files import FOLDERS, SourceFile, read_files

MAX_LINES = 300

VAGUE_WORDS = frozenset({"util", "utils", "helper", "helpers", "manager", "managers", "common"})

FILES = read_files(FOLDERS)


def large_files(files: Sequence[SourceFile]) -> list[str]:
    return [f"{file.path} has {lines} lines" for file in files if (lines := len(file.text.splitlines())) > MAX_LINES]


def vague_files(files: Sequence[SourceFile]) -> list[str]:
    """Paths with a word, in a folder's or the file's name, that says nothing about what is inside."""
    return [file.path for file in files if VAGUE_WORDS & words_of(file.path)]


def words_of(path: str) -> set[str]:
    return {word for part in PurePosixPath(path).with_suffix("").parts for word in part.split("_")}


def test_a_file_stays_small() -> None:
    assert large_files(FILES) == []


def test_a_name_says_what_is_inside() -> None:
    assert vague_files(FILES) == []


@pytest.mark.parametrize(("lines", "faults"), [(MAX_LINES, 0), (MAX_LINES + 1, 1)])
def test_a_large_file_is_seen(lines: int, faults: int) -> None:
    assert len(large_files([SourceFile("aiki_push/sdk/task.py", "pass\n" * lines)])) == faults


@pytest.mark.parametrize("path", ["aiki_push/sdk/utils.py", "aiki_push/common/run.py", "aiki_push/sdk/time_helpers.py"])
def test_a_vague_name_is_seen(path: str) -> None:
    assert vague_files([SourceFile(path, "")]) == [path]
