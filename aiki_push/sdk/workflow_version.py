"""Versions of workflows, and single starts: what an author starts and hands to executors."""

from collections.abc import Callable, Coroutine
from copy import copy
from datetime import timedelta
from typing import Any, Generic, Literal, ParamSpec, TypeVar, overload

from aiki_push.domain.canonical_json import NO_INPUT_HASH, input_hash
from aiki_push.domain.errors import NotFound, SettingsError
from aiki_push.domain.ids import ulid
from aiki_push.domain.retry import RetryStrategy
from aiki_push.domain.starts import ConflictPolicy
from aiki_push.domain.values import Json, RunId
from aiki_push.ports.api.runs import GetRun, ListRuns, StartRun
from aiki_push.sdk.arguments import check_arguments
from aiki_push.sdk.child import ChildHandle, start_child
from aiki_push.sdk.client import Client
from aiki_push.sdk.event import Referenced
from aiki_push.sdk.options import SINGLE_START_PATHS, Options, PriorityLevel, Reference, check_reference
from aiki_push.sdk.run import Run
from aiki_push.sdk.run_handle import Handle
from aiki_push.sdk.sizes import check_size
from aiki_push.sdk.types.json_type import JsonType

P = ParamSpec("P")
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
        options: Options,
    ) -> None:
        self.name = name
        self.version = version
        self.handler = handler
        self.input_type = input_type
        self.output_type = output_type
        self.options = options

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name} {self.version})"

    def __str__(self) -> str:
        return f"{self.name} {self.version}"

    def check_types(self) -> None:
        """Check what could not be checked at definition, for names that did not exist yet. Raises SettingsError, NotSerializable."""
        for declared in (self.input_type, self.output_type):
            if declared is not None:
                declared.check()

    def encode_input(self, *args: Any, **kwargs: Any) -> dict[str, Json]:
        """The arguments of `start` as fields of its request; none where the workflow takes no input.

        Raises InvalidValue (lists each field at fault), NotSerializable, PayloadTooLarge, TypeError.
        """
        taken = 1 if self.input_type is None else 2
        check_arguments(self.handler, (None, *args), kwargs, taken=taken, of=self.name)
        if self.input_type is None:
            return {}
        at = f"{self.name}: input"
        encoded, _ = self.input_type.round_trip(args[0], at=at)
        check_size(encoded, at=at)
        return {"input": encoded}

    def input_digest(self, *args: Any) -> str:
        """The hash by which a call with this input is known: fields that equal their defaults do not count."""
        if self.input_type is None:
            return NO_INPUT_HASH
        return input_hash(self.input_type.key_value(args[0], at=f"{self.name}: input"))

    def encode_output(self, output: object) -> Json:
        """What the handler returned as JSON that restores to the same value. Raises NotSerializable, PayloadTooLarge."""
        at = f"{self.name}: output"
        encoded, _ = self.output_type.round_trip(output, at=at)
        check_size(encoded, at=at)
        return encoded


class SingleStart(Generic[P, O]):
    """A version with options that are about one particular run: which one it is, when it goes. It can be started, and that is all."""

    def __init__(self, version: AnyWorkflowVersion, options: Options) -> None:
        self._version = version
        self._options = options

    def __repr__(self) -> str:
        return f"SingleStart({self._version})"

    async def start(self, client: Client, /, *args: P.args, **kwargs: P.kwargs) -> Handle[O]:
        """Start the run, or find the one with this reference. Raises as WorkflowVersion.start, and ReferenceConflict."""
        return await _start(client, self._version, self._options, self._version.encode_input(*args, **kwargs))

    async def start_as_child(self, run: Run, /, *args: P.args, **kwargs: P.kwargs) -> ChildHandle[O]:
        """Start the run as a child of `run`, or find the one with this reference. Raises as WorkflowVersion.start_as_child."""
        return await _start_child(run, self._version, self._options, *args, **kwargs)

    @overload
    def with_(self, path: Literal["retry"], value: RetryStrategy, /) -> "SingleStart[P, O]": ...
    @overload
    def with_(self, path: Literal["pool"], value: str, /) -> "SingleStart[P, O]": ...
    @overload
    def with_(self, path: Literal["priority"], value: PriorityLevel, /) -> "SingleStart[P, O]": ...
    @overload
    def with_(self, path: Literal["delay"], value: timedelta, /) -> "SingleStart[P, O]": ...
    @overload
    def with_(self, path: Literal["reference"], value: Reference, /) -> "SingleStart[P, O]": ...
    @overload
    def with_(self, path: Literal["reference.id"], value: str, /) -> "SingleStart[P, O]": ...
    @overload
    def with_(self, path: Literal["reference.conflict_policy"], value: ConflictPolicy, /) -> "SingleStart[P, O]": ...

    def with_(self, path: str, value: Any, /) -> "SingleStart[P, O]":
        """A copy with one more option. Raises SettingsError, naming the path."""
        return SingleStart(self._version, self._options.with_(path, value, of=str(self._version)))


class WorkflowVersion(AnyWorkflowVersion, Generic[P, O]):
    """One version of one workflow. Runs are pinned to the version that they were started with."""

    async def start(self, client: Client, /, *args: P.args, **kwargs: P.kwargs) -> Handle[O]:
        """Start a run. Repeats itself safely until the server answers.

        Raises InvalidValue (the input does not fit its type; lists each field at fault), NotSerializable (the input is no plain
        JSON), PayloadTooLarge, ServerUnreachable, and what the server refuses with.
        """
        return await _start(client, self, self.options, self.encode_input(*args, **kwargs))

    async def start_as_child(self, run: Run, /, *args: P.args, **kwargs: P.kwargs) -> ChildHandle[O]:
        """Start a run as a child of `run`, exactly once, with the pool and priority of `run` unless this version has its own.

        Raises InvalidValue, NotSerializable, PayloadTooLarge, and ReferenceConflict: another input is known by the reference.
        """
        return await _start_child(run, self, self.options, *args, **kwargs)

    def referenced(self, reference: str) -> Referenced:
        """The run of this version that has this reference, to send events to. Raises SettingsError for an impossible one."""
        return Referenced(self.name, self.version, check_reference(reference, f"{self}: reference"))

    @overload
    def with_(self, path: Literal["retry"], value: RetryStrategy, /) -> "WorkflowVersion[P, O]": ...
    @overload
    def with_(self, path: Literal["pool"], value: str, /) -> "WorkflowVersion[P, O]": ...
    @overload
    def with_(self, path: Literal["priority"], value: PriorityLevel, /) -> "WorkflowVersion[P, O]": ...
    @overload
    def with_(self, path: Literal["delay"], value: timedelta, /) -> SingleStart[P, O]: ...
    @overload
    def with_(self, path: Literal["reference"], value: Reference, /) -> SingleStart[P, O]: ...
    @overload
    def with_(self, path: Literal["reference.id"], value: str, /) -> SingleStart[P, O]: ...
    @overload
    def with_(self, path: Literal["reference.conflict_policy"], value: ConflictPolicy, /) -> SingleStart[P, O]: ...

    def with_(self, path: str, value: Any, /) -> "WorkflowVersion[P, O] | SingleStart[P, O]":
        """A copy with one option set. `delay` and `reference` are about one particular run: with them it is a SingleStart.

        Raises SettingsError, naming the path and what would be right.
        """
        options = self.options.with_(path, value, of=str(self))
        if path in SINGLE_START_PATHS:
            return SingleStart(self, options)
        changed = copy(self)
        changed.options = options
        return changed

    async def get(self, client: Client, run_id: str) -> Handle[O]:
        """The handle of an existing run. Raises NotFound; SettingsError for a run of another workflow or version."""
        view = await client.api.call(GetRun(run_id=RunId(run_id)))
        if (view.workflow, view.version) != (self.name, self.version):
            raise SettingsError(f"run {run_id} is one of {view.workflow} {view.version}, not of {self}")
        return Handle(client, view, self.output_type)

    async def get_by_reference(self, client: Client, reference: str) -> Handle[O]:
        """The handle of the run of this version that has this reference id. Raises NotFound; SettingsError for an impossible one."""
        wanted = check_reference(reference, f"{self}: reference")
        found = await client.api.call(ListRuns(workflow=self.name, version=self.version, reference=wanted, limit=1))
        if not found.runs:
            raise NotFound(f"no run of {self} has this reference")
        return await self.get(client, found.runs[0].id)


async def _start(client: Client, version: AnyWorkflowVersion, options: Options, given: dict[str, Json]) -> Handle[Any]:
    run_id = RunId(ulid(client.clock.now(), client.entropy.token(10)))
    asked = {"run_id": run_id, "workflow": version.name, "version": version.version}
    request = StartRun.model_validate(asked | given | options.request_fields(of=str(version)))
    view = await client.api.call(request)
    return Handle(client, view, version.output_type)


async def _start_child(run: Run, version: AnyWorkflowVersion, options: Options, *args: Any, **kwargs: Any) -> ChildHandle[Any]:
    given = version.encode_input(*args, **kwargs)
    return await start_child(
        run,
        version.name,
        version.version,
        options=options,
        given=given,
        digest=version.input_digest(*args),
        output_type=version.output_type,
    )
