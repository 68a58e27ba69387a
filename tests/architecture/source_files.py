"""The project's Python files as data. Read with `ast`, so imports inside functions and under TYPE_CHECKING count too."""

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]

PRODUCT = ("aiki_push", "handlers", "infra")
"""Folders of what is shipped or deployed."""

FOLDERS = (*PRODUCT, "tests", "examples", "bench")
"""Every folder with Python files of ours; each is also the first part of a module's name."""


@dataclass(frozen=True, slots=True)
class Import:
    """One imported name with its module, `a.b.C` for `from a.b import C`; a relative one begins with a dot."""

    line: int
    name: str

    @property
    def library(self) -> str:
        """The part before the first dot."""
        return self.name.partition(".")[0]


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A file by its path from the root, with forward slashes, and its text."""

    path: str
    text: str

    @property
    def module(self) -> str:
        """The dotted name under which it is imported."""
        return self.path.removesuffix(".py").replace("/", ".").removesuffix(".__init__")

    def imports(self) -> tuple[Import, ...]:
        """Every import statement's names, and the names given as text to `import_module` and `__import__`."""
        return tuple(found for node in ast.walk(ast.parse(self.text, self.path)) for found in _imports_of(node))


def read_files(folders: Iterable[str]) -> tuple[SourceFile, ...]:
    """The Python files below `folders`, by path. A folder that is not there has none."""
    paths = sorted(path for folder in folders for path in (ROOT / folder).rglob("*.py"))
    return tuple(SourceFile(path.relative_to(ROOT).as_posix(), path.read_text("utf-8")) for path in paths)


def _imports_of(node: ast.AST) -> Iterator[Import]:
    match node:
        case ast.Import(names=names):
            yield from (Import(node.lineno, alias.name) for alias in names)
        case ast.ImportFrom(module=module, names=names, level=level):
            parent = "." * level + (f"{module}." if module else "")
            yield from (Import(node.lineno, parent + alias.name) for alias in names)
        case ast.Call(
            func=ast.Attribute(attr="import_module" | "__import__") | ast.Name(id="import_module" | "__import__"),
            args=[ast.Constant(value=str(name)), *_],
        ):
            yield Import(node.lineno, name)
