"""The rings, as a table that fails the build."""

from collections.abc import Sequence
from graphlib import CycleError, TopologicalSorter

import pytest

from tests.architecture.source_files import FOLDERS, PRODUCT, SourceFile, read_files

MAY_IMPORT: dict[str, frozenset[str]] = {
    "domain": frozenset(),
    "ports": frozenset({"domain"}),
    "sdk": frozenset({"domain", "ports"}),
    "server": frozenset({"domain", "ports"}),
    "adapters": frozenset({"domain", "ports"}),
    "apps": frozenset({"domain", "ports", "sdk", "server", "adapters"}),
    "testing": frozenset({"domain", "ports", "sdk", "server", "adapters", "apps"}),
    "door": frozenset({"domain", "ports", "sdk", "server", "adapters", "apps", "testing"}),
    "handlers": frozenset({"apps"}),
    "infra": frozenset({"adapters"}),
}
"""Beside its own ring. The door is nobody's: users import it, we do not."""

DOOR_FILES = ("aiki_push/__init__.py", "aiki_push/errors.py")

FILES = read_files(PRODUCT)


def ring_of_file(file: SourceFile) -> str:
    return "door" if file.path in DOOR_FILES else ring_of_name(file.module)


def ring_of_name(name: str) -> str:
    """The folder under aiki_push, or the folder itself outside it. A name taken from the door is in no ring."""
    first, *rest = name.split(".")
    return (rest[0] if rest else "door") if first == "aiki_push" else first


def rings_open_to(file: SourceFile) -> set[str]:
    own = ring_of_file(file)
    return {own} - {"door"} | MAY_IMPORT.get(own, frozenset())


def forbidden_imports(files: Sequence[SourceFile]) -> list[str]:
    return [
        f"{file.path}:{found.line} imports {found.name}"
        for file in files
        for found in file.imports()
        if found.library in FOLDERS and ring_of_name(found.name) not in rings_open_to(file)
    ]


def relative_imports(files: Sequence[SourceFile]) -> list[str]:
    return [f"{file.path}:{found.line}" for file in files for found in file.imports() if found.name.startswith(".")]


def sibling_imports(files: Sequence[SourceFile]) -> list[str]:
    """Imports between two of the first files or folders under adapters/."""
    adapters = [file for file in files if file.path.startswith("aiki_push/adapters/")]
    return [
        f"{file.path}:{found.line} imports {found.name}"
        for file in adapters
        for found in file.imports()
        if found.name.startswith("aiki_push.adapters.") and found.name.split(".")[2:3] != file.module.split(".")[2:3]
    ]


def circle(files: Sequence[SourceFile]) -> list[str]:
    """The modules of one circle of imports, the first named again at the end; empty where there is none."""
    modules = {file.module for file in files}
    graph = {file.module: {module_of(found.name, modules) for found in file.imports()} - {""} for file in files}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


def module_of(name: str, modules: set[str]) -> str:
    """The longest leading part of `name` that is a module of ours, or nothing."""
    while name and name not in modules:
        name = name.rpartition(".")[0]
    return name


def test_every_file_is_in_a_ring() -> None:
    assert [file.path for file in FILES if ring_of_file(file) not in MAY_IMPORT] == []


def test_a_module_imports_only_from_rings_it_may() -> None:
    assert forbidden_imports(FILES) == []


def test_no_import_is_relative() -> None:
    assert relative_imports(read_files(FOLDERS)) == []


def test_an_adapter_does_not_know_its_siblings() -> None:
    assert sibling_imports(FILES) == []


def test_imports_form_no_circle() -> None:
    assert circle(FILES) == []


def test_the_table_of_rings_has_no_circle() -> None:
    TopologicalSorter(MAY_IMPORT).prepare()


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("aiki_push/domain/run.py", "import aiki_push.ports.clock"),
        ("aiki_push/domain/run.py", "def late():\n    from aiki_push.sdk import task"),
        ("aiki_push/sdk/client.py", "if TYPE_CHECKING:\n    from aiki_push.server.runs import start"),
        ("aiki_push/server/runs.py", "importlib.import_module('aiki_push.adapters.system')"),
        ("aiki_push/adapters/system.py", "from aiki_push import sdk"),
        ("aiki_push/apps/build.py", "import aiki_push"),
        ("aiki_push/apps/build.py", "from aiki_push import workflow"),
        ("aiki_push/apps/build.py", "from aiki_push.errors import NotFound"),
        ("aiki_push/apps/build.py", "from aiki_push.testing import FakeClock"),
        ("aiki_push/apps/build.py", "from infra import table"),
        ("aiki_push/testing/harness.py", "from tests.unit import examples"),
        ("aiki_push/errors.py", "import aiki_push"),
        ("aiki_push/unknown/part.py", "from aiki_push.domain import run"),
        ("handlers/api.py", "from aiki_push.server.service import Service"),
        ("infra/table.py", "from aiki_push.domain import run"),
    ],
)
def test_an_import_from_a_wrong_ring_is_seen(path: str, text: str) -> None:
    assert len(forbidden_imports([SourceFile(path, text)])) == 1


def test_a_relative_import_is_seen() -> None:
    assert relative_imports([SourceFile("a.py", "from . import b"), SourceFile("c.py", "from ..d import e")]) == [
        "a.py:1",
        "c.py:1",
    ]


@pytest.mark.parametrize(
    ("path", "text", "faults"),
    [
        ("aiki_push/adapters/storage/memory/store.py", "from aiki_push.adapters.system import SystemClock", 1),
        ("aiki_push/adapters/system.py", "from aiki_push.adapters import payloads", 1),
        ("aiki_push/adapters/transport/wire.py", "from aiki_push.adapters.transport.embedded import call", 0),
    ],
)
def test_an_import_of_a_sibling_is_seen(path: str, text: str, faults: int) -> None:
    assert len(sibling_imports([SourceFile(path, text)])) == faults


def test_a_circle_of_imports_is_seen() -> None:
    first = SourceFile("aiki_push/sdk/first.py", "from aiki_push.sdk.second import Second")
    second = SourceFile("aiki_push/sdk/second.py", "def late():\n    from aiki_push.sdk import first")
    assert set(circle([first, second])) == {first.module, second.module}
