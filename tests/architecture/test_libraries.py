"""Where each library may be imported, as a table that fails the build. What is not in it is not imported at all."""

import ast
import sys
from collections.abc import Iterator, Sequence

import pytest

from tests.architecture.source_files import FOLDERS, PRODUCT, SourceFile, read_files

APPS = "aiki_push/apps/"
AWS = ("aiki_push/adapters/storage/dynamodb/", "aiki_push/adapters/wakeups/", APPS)
HTTP_SERVER = ("aiki_push/adapters/transport/asgi_api.py", APPS)

PLACES: dict[str, tuple[str, ...]] = {
    "pydantic": ("aiki_push/",),
    "pydantic_core": ("aiki_push/",),
    "typing_extensions": ("aiki_push/",),
    "nacl": ("aiki_push/adapters/signing/",),
    "httpx": ("aiki_push/adapters/delivery/", "aiki_push/adapters/transport/", APPS),
    "redis": ("aiki_push/adapters/delivery/redis_queue.py",),
    "boto3": AWS,
    "botocore": AWS,
    "moto": AWS,
    "mypy_boto3_dynamodb": AWS,
    "mypy_boto3_sqs": AWS,
    "aws_lambda_powertools": ("aiki_push/adapters/transport/lambda_api.py", APPS, "handlers/"),
    "starlette": HTTP_SERVER,
    "uvicorn": HTTP_SERVER,
    "pydantic_settings": (APPS,),
    "pytest": ("aiki_push/testing/pytest_plugin.py",),
    "typer": (APPS,),
    "rich": (APPS,),
}

STANDARD_LIBRARY = sys.stdlib_module_names | {"annotationlib"}
"""This Python's, and what later ones add that we use there."""

INNER_RINGS = ("aiki_push/domain/", "aiki_push/ports/", "aiki_push/sdk/", "aiki_push/server/")

IMPURE = frozenset({"asyncio", "os", "pathlib", "random", "secrets", "socket", "subprocess", "threading", "time", "uuid"})
"""Parts of the standard library that reach outside the process or differ from one call to the next."""

PRIVATE_ASYNCIO = {"aiki_push/sdk/replay/loop.py": {"_get_running_loop", "_set_running_loop"}}
"""Names that asyncio documents for whoever writes an event loop, underscore and all. No other private name of it is used."""

FILES = read_files(PRODUCT)


def misplaced_libraries(files: Sequence[SourceFile]) -> list[str]:
    return [
        f"{file.path}:{found.line} imports {found.library}"
        for file in files
        for found in file.imports()
        if found.library not in STANDARD_LIBRARY
        and found.library not in FOLDERS
        and not file.path.startswith(PLACES.get(found.library, ()))
    ]


def impurities(files: Sequence[SourceFile]) -> list[str]:
    return [
        f"{file.path}:{found.line} imports {found.name}"
        for file in files
        if file.path.startswith("aiki_push/domain/")
        for found in file.imports()
        if found.library in IMPURE
    ]


def private_asyncio_names(files: Sequence[SourceFile]) -> list[str]:
    return [
        f"{file.path} uses asyncio's {name}"
        for file in files
        for name in sorted(set(_private_asyncio_names(ast.parse(file.text))) - PRIVATE_ASYNCIO.get(file.path, set()))
    ]


def _private_asyncio_names(tree: ast.Module) -> Iterator[str]:
    bound = dict(_names_from_asyncio(tree))
    yield from (name for name in bound.values() if _is_private(name))
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and _is_private(node.attr) and _root(node) in bound:
            yield node.attr


def _names_from_asyncio(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """What the file calls a thing of asyncio's, and asyncio's own name for it."""
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=names):
                yield from ((one.asname or "asyncio", one.name) for one in names if one.name.split(".")[0] == "asyncio")
            case ast.ImportFrom(module=str(module), names=names) if module.split(".")[0] == "asyncio":
                yield from ((one.asname or one.name, one.name) for one in names)


def _root(node: ast.expr) -> str | None:
    """The name at the left end of a chain of attributes and calls."""
    while isinstance(node, ast.Attribute | ast.Call):
        node = node.value if isinstance(node, ast.Attribute) else node.func
    return node.id if isinstance(node, ast.Name) else None


def _is_private(name: str) -> bool:
    return name.startswith("_") and not name.endswith("__")


def test_a_library_is_imported_only_in_its_places() -> None:
    assert misplaced_libraries(FILES) == []


def test_the_inner_rings_are_open_to_pydantic_alone() -> None:
    needed = {name for name, places in PLACES.items() if any(ring.startswith(places) for ring in INNER_RINGS)}
    assert needed == {"pydantic", "pydantic_core", "typing_extensions"}


def test_the_domain_is_pure() -> None:
    assert impurities(FILES) == []


def test_asyncio_is_used_by_its_public_names() -> None:
    assert private_asyncio_names(FILES) == []


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("aiki_push/domain/run.py", "import httpx"),
        ("aiki_push/sdk/client.py", "def late():\n    import boto3.session"),
        ("aiki_push/server/service.py", "if TYPE_CHECKING:\n    from mypy_boto3_dynamodb import DynamoDBClient"),
        ("aiki_push/adapters/delivery/http_push.py", "from nacl.signing import SigningKey"),
        ("aiki_push/adapters/delivery/http_polling.py", "import redis"),
        ("aiki_push/adapters/storage/memory/store.py", "import importlib\nimportlib.import_module('botocore')"),
        ("aiki_push/adapters/transport/wire.py", "from aws_lambda_powertools import Logger"),
        ("aiki_push/adapters/transport/lambda_api.py", "import starlette"),
        ("aiki_push/adapters/system.py", "import typer"),
        ("aiki_push/apps/build.py", "import requests"),
        ("handlers/api.py", "import boto3"),
        ("infra/table.py", "import pydantic"),
    ],
)
def test_a_library_out_of_place_is_seen(path: str, text: str) -> None:
    assert len(misplaced_libraries([SourceFile(path, text)])) == 1


@pytest.mark.parametrize("text", ["import time", "from os import path", "def late():\n    from uuid import uuid7"])
def test_an_impure_import_of_the_domain_is_seen(text: str) -> None:
    assert len(impurities([SourceFile("aiki_push/domain/run.py", text)])) == 1


@pytest.mark.parametrize(
    "text",
    [
        "import asyncio\nasyncio._enter_task(loop, task)",
        "import asyncio as aio\naio.events._set_running_loop(None)",
        "from asyncio import events\nevents._lock",
        "from asyncio.events import _get_running_loop",
        "import asyncio\nasyncio.get_running_loop()._ready",
    ],
)
def test_a_private_name_of_asyncio_is_seen(text: str) -> None:
    assert len(private_asyncio_names([SourceFile("aiki_push/sdk/replay/executor.py", text)])) == 1


def test_the_event_loop_may_use_two_private_names_and_no_third() -> None:
    text = "import asyncio\nasyncio._get_running_loop()\nasyncio._set_running_loop(None)\nasyncio._leave_task(a, b)"
    path = "aiki_push/sdk/replay/loop.py"
    assert private_asyncio_names([SourceFile(path, text)]) == [f"{path} uses asyncio's _leave_task"]
