"""The public door: explicit, lazy, and light."""

import ast
import importlib
import subprocess
import sys
from collections.abc import Iterable, Iterator

import pytest

import aiki_push
from tests.architecture.source_files import ROOT

TEXT = (ROOT / "aiki_push/__init__.py").read_text("utf-8")

SDK = ("aiki_push.domain.", "aiki_push.ports.", "aiki_push.sdk.")

SERVER_LIBRARIES = frozenset({"aws_lambda_powertools", "boto3", "botocore", "moto", "redis", "starlette", "typer", "uvicorn"})


def offered_names(text: str) -> set[str]:
    """The literal `__all__`; empty where there is none."""
    for statement in ast.parse(text).body:
        match statement:
            case (
                ast.Assign(targets=[ast.Name(id="__all__")], value=value)
                | ast.AnnAssign(target=ast.Name(id="__all__"), value=value)
            ):
                assert value is not None
                return set(ast.literal_eval(value))
    return set()


def promised_names(text: str) -> dict[str, tuple[str, str]]:
    """What the TYPE_CHECKING block imports: the door's name, and the module and the name there."""
    return {
        alias.asname or alias.name: (statement.module or "", alias.name)
        for block in ast.parse(text).body
        if isinstance(block, ast.If) and ast.unparse(block.test) in ("TYPE_CHECKING", "typing.TYPE_CHECKING")
        for statement in block.body
        if isinstance(statement, ast.ImportFrom)
        for alias in statement.names
    }


def own_names(text: str) -> set[str]:
    """What the door itself assigns, like `__version__`."""
    statements = [statement for statement in ast.parse(text).body if isinstance(statement, ast.Assign)]
    return {target.id for statement in statements for target in statement.targets if isinstance(target, ast.Name)}


def unmatched_names(text: str) -> set[str]:
    """Names that only one of `__all__` and the TYPE_CHECKING block has."""
    offered, promised = offered_names(text), promised_names(text).keys()
    return (offered - promised - own_names(text)) | (promised - offered)


def eager_imports(text: str) -> set[str]:
    """What is imported with the door itself, but for the standard library."""
    return set(_eager_imports(ast.parse(text).body)) - sys.stdlib_module_names


def _eager_imports(statements: Iterable[ast.stmt]) -> Iterator[str]:
    for statement in statements:
        match statement:
            case ast.Import(names=names):
                yield from (alias.name.partition(".")[0] for alias in names)
            case ast.ImportFrom(module=module):
                yield (module or "").partition(".")[0]


def libraries_loaded_by(statements: str) -> set[str]:
    """First parts of the names of all modules that a new interpreter has after `statements`."""
    program = f"import sys\n{statements}\nprint(*{{name.partition('.')[0] for name in sys.modules}})"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=ROOT)
    return set(done.stdout.split())


def test_all_and_the_type_checking_block_list_the_same_names() -> None:
    assert unmatched_names(TEXT) == set()


def test_every_name_is_the_object_that_type_checkers_see() -> None:
    promised = promised_names(TEXT)
    expected = {name: getattr(importlib.import_module(module), original) for name, (module, original) in promised.items()}
    assert {name: getattr(aiki_push, name) for name in promised} == expected


def test_every_offered_name_resolves() -> None:
    assert [name for name in offered_names(TEXT) if not hasattr(aiki_push, name)] == []


def test_a_name_that_is_not_offered_is_refused() -> None:
    with pytest.raises(AttributeError, match="no_such_name"):
        _ = aiki_push.no_such_name  # type: ignore[attr-defined,unused-ignore]  # the point of the test


def test_the_door_itself_imports_only_the_standard_library() -> None:
    assert eager_imports(TEXT) == set()


def test_importing_the_door_loads_no_library() -> None:
    assert libraries_loaded_by("import aiki_push") & (SERVER_LIBRARIES | {"httpx", "nacl", "pydantic"}) == set()


def test_the_sdk_loads_none_of_the_servers_libraries() -> None:
    names = [name for name, (module, _) in promised_names(TEXT).items() if f"{module}.".startswith(SDK)]
    assert libraries_loaded_by(f"import aiki_push\n[getattr(aiki_push, name) for name in {names}]") & SERVER_LIBRARIES == set()


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("__all__ = ['task']", {"task"}),
        ("if TYPE_CHECKING:\n    from aiki_push.sdk.task import task\n", {"task"}),
        ("__all__ = ['Task']\nif TYPE_CHECKING:\n    from aiki_push.sdk.task import Task as task\n", {"Task", "task"}),
        ("__all__: list[str] = ['task']\nif typing.TYPE_CHECKING:\n    from aiki_push.sdk.task import task\n", set()),
        ("__all__ = ['__version__']\n__version__ = '1.0.0'", set()),
    ],
)
def test_a_name_that_only_one_list_has_is_seen(text: str, names: set[str]) -> None:
    assert unmatched_names(text) == names


def test_an_import_with_the_door_is_seen() -> None:
    assert eager_imports("import typing\nfrom aiki_push.sdk.task import task\nimport httpx.config") == {"aiki_push", "httpx"}


def test_a_loaded_library_is_seen() -> None:
    assert libraries_loaded_by("import nacl") & {"httpx", "nacl"} == {"nacl"}
