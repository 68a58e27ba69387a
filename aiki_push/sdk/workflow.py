"""Workflows and their versions: what an author defines, starts and hands to executors."""

import inspect
import sys
from collections.abc import Callable, Coroutine
from typing import Any, Generic, ParamSpec, Protocol, TypeVar, overload

from typing_extensions import TypeForm

from aiki_push.domain.errors import SettingsError
from aiki_push.domain.ids import ulid
from aiki_push.domain.values import DEFAULT_PRIORITY, Json, RunId
from aiki_push.ports.api.runs import GetRun, StartOptions, StartRun
from aiki_push.sdk.client import Client
from aiki_push.sdk.names import check_name
from aiki_push.sdk.run import Run
from aiki_push.sdk.run_handle import Handle
from aiki_push.sdk.task import check_size
from aiki_push.sdk.types.hints import handler_types
from aiki_push.sdk.types.json_type import JsonType

P = ParamSpec("P")
I = TypeVar("I")  # noqa: E741 - the input
O = TypeVar("O")  # noqa: E741 - the output


class AnyWorkflowVersion:
    """One version of one workflow, whatever it takes and returns: what executors are given."""

    def __init__(
        self,
        name: str,
        version: str,
        handler: Callable[..., Coroutine[Any, Any, Any]],
        input_type: JsonType[Any] | None,
        output_type: JsonType[Any],
        options: StartOptions,
    ) -> None:
        self.name = name
        self.version = version
        self.handler = handler
        self.input_type = input_type
        self.output_type = output_type
        self.options = options

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name} {self.version})"

    def encode_output(self, output: object) -> Json:
        """What the handler returned as JSON that restores to the same value. Raises NotSerializable, PayloadTooLarge."""
        at = f"{self.name}: output"
        encoded, _ = self.output_type.round_trip(output, at=at)
        check_size(encoded, at=at)
        return encoded


class WorkflowVersion(AnyWorkflowVersion, Generic[P, O]):
    """One version of one workflow. Runs are pinned to the version that they were started with."""

    async def start(self, client: Client, /, *args: P.args, **kwargs: P.kwargs) -> Handle[O]:
        """Start a run. Repeats itself safely until the server answers.

        Raises NotSerializable (the input is no plain JSON), PayloadTooLarge, ServerUnreachable, and what the server refuses with.
        """
        given = self._input(*args, **kwargs)
        run_id = RunId(ulid(client.clock.now(), client.entropy.token(10)))
        view = await client.api.call(
            StartRun.model_validate(
                {"run_id": run_id, "workflow": self.name, "version": self.version, "options": self.options, **given}
            )
        )
        return Handle(client, view, self.output_type)

    def _input(self, *args: Any, **kwargs: Any) -> dict[str, Json]:
        bound = inspect.signature(self.handler).bind(None, *args, **kwargs).args[1:]
        if self.input_type is None:
            return {}
        at = f"{self.name}: input"
        encoded, _ = self.input_type.round_trip(bound[0], at=at)
        check_size(encoded, at=at)
        return {"input": encoded}

    async def get(self, client: Client, run_id: str) -> Handle[O]:
        """The handle of an existing run. Raises NotFound; SettingsError for a run of another workflow or version."""
        view = await client.api.call(GetRun(run_id=RunId(run_id)))
        if (view.workflow, view.version) != (self.name, self.version):
            raise SettingsError(f"run {run_id} is one of {view.workflow} {view.version}, not of {self.name} {self.version}")
        return Handle(client, view, self.output_type)


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
        pool: str | None = None,
        priority: int = DEFAULT_PRIORITY,
        input: TypeForm[Any] | None = None,
        output: TypeForm[Any] | None = None,
    ) -> VersionDecorator:
        """Define one version. Its runs go to executors of `pool`; `priority` (0 first, 9 last) breaks ties among runs due together.

        `input` and `output` stand in for type hints. Raises SettingsError (a second handler for the version, a handler that is no
        `async def` of a run and at most one input), NotSerializable (a type that JSON cannot hold), naming the place.
        """
        check_name(version, what="version")
        if version in self._versions:
            raise SettingsError(f"{self.name} {version} is already defined; give changed code a new version")
        names = sys._getframe(1).f_locals
        options = StartOptions(pool=pool, priority=priority)

        def decorate(handler: Callable[..., Coroutine[Any, Any, Any]]) -> WorkflowVersion[..., Any]:
            if not inspect.iscoroutinefunction(handler):
                raise SettingsError(f"{self.name} {version}: a workflow is an `async def`")
            hints = handler_types(handler, drop_first=True, localns=names)
            taken = input if input is not None else hints.input
            made = WorkflowVersion[..., Any](
                self.name,
                version,
                handler,
                JsonType(taken, at=f"{self.name}: input") if taken is not None else None,
                JsonType(output if output is not None else hints.output, at=f"{self.name}: output"),
                options,
            )
            self._versions.add(version)
            return made

        return decorate


def workflow(name: str) -> Workflow:
    """Name a workflow: 1 to 128 letters, digits, and `.`, `_`, `:`, `-`. Raises SettingsError for another name."""
    return Workflow(name)
