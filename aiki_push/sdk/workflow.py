"""Workflows: a name, and the versions that an author defines under it."""

import inspect
import sys
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, Protocol, TypeVar, overload

from typing_extensions import TypeForm

from aiki_push.domain.errors import SettingsError
from aiki_push.domain.retry import RetryStrategy
from aiki_push.sdk.names import check_name
from aiki_push.sdk.options import Options, PriorityLevel
from aiki_push.sdk.run import Run
from aiki_push.sdk.types.allowed import JsonRule
from aiki_push.sdk.types.hints import handler_types
from aiki_push.sdk.types.json_type import JsonType
from aiki_push.sdk.workflow_version import WorkflowVersion

I = TypeVar("I")  # noqa: E741 - the input
O = TypeVar("O")  # noqa: E741 - the output


class VersionDecorator(Protocol):
    """Makes an `async def` that takes a Run and one input, or none, a version of a workflow."""

    @overload
    def __call__(self, handler: Callable[[Run, I], Coroutine[Any, Any, O]], /) -> WorkflowVersion[[I], O]: ...
    @overload
    def __call__(self, handler: Callable[[Run], Coroutine[Any, Any, O]], /) -> WorkflowVersion[[], O]: ...


class Workflow:
    """A workflow's name; its versions are made by `v`."""

    def __init__(self, name: str) -> None:
        check_name(name, what="workflow")
        self.name = name
        self._versions: set[str] = set()

    def __repr__(self) -> str:
        return f"Workflow({self.name})"

    def v(
        self,
        version: str,
        *,
        retry: RetryStrategy | None = None,
        pool: str | None = None,
        priority: PriorityLevel | None = None,
        input: TypeForm[Any] | None = None,
        output: TypeForm[Any] | None = None,
        json: JsonRule = "strict",
    ) -> VersionDecorator:
        """Define one version. `retry`, `pool` and `priority` are the options of its runs, unless `with_` says otherwise.

        `pool` names the executors that may take them; `priority` (0 first, 9 last, default 5) breaks ties among runs due in the same
        millisecond. `input` and `output` stand in for type hints. `json="typed"` also allows types that pydantic itself takes to JSON
        and back, like datetime and UUID.
        Raises SettingsError (a second handler for the version, a handler that is no `async def` of a run and at most one input, a
        wrong option), NotSerializable (a type that JSON cannot hold), naming the place.
        """
        check_name(version, what="version")
        if version in self._versions:
            raise SettingsError(f"{self.name} {version} is already defined; give changed code a new version")
        options = _options({"retry": retry, "pool": pool, "priority": priority}, of=f"{self.name} {version}")
        names = sys._getframe(1).f_locals

        def decorate(handler: Callable[..., Coroutine[Any, Any, Any]]) -> WorkflowVersion[..., Any]:
            if not inspect.iscoroutinefunction(handler):
                raise SettingsError(f"{self.name} {version}: a workflow is an `async def`")
            hints = handler_types(handler, drop_first=True, localns=names, input=input, output=output)
            made = WorkflowVersion[..., Any](
                self.name,
                version,
                handler,
                None if hints.input is None else JsonType(hints.input, at=f"{self.name}: input", json=json),
                JsonType(hints.output, at=f"{self.name}: output", json=json),
                options,
            )
            self._versions.add(version)
            return made

        return decorate


def _options(given: Mapping[str, object], *, of: str) -> Options:
    options = Options()
    for path, value in given.items():
        if value is not None:
            options = options.with_(path, value, of=of)
    return options


def workflow(name: str) -> Workflow:
    """Name a workflow: 1 to 128 letters, digits, and `.`, `_`, `:`, `-`. Raises SettingsError for another name."""
    return Workflow(name)
