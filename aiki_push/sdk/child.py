"""Children: runs that a workflow starts."""

from datetime import timedelta
from typing import Any, Generic, TypeVar, overload

from aiki_push.domain import run_states
from aiki_push.domain.durations import duration_ms
from aiki_push.domain.errors import WorkflowError
from aiki_push.domain.ids import join_key
from aiki_push.domain.inbox import RunEnding
from aiki_push.domain.log_records import RecordedError
from aiki_push.domain.values import Inline, Json, PayloadReference, RunId
from aiki_push.ports.api.calls import StartChild
from aiki_push.sdk.calls import Calls, RunCall, WaitCall
from aiki_push.sdk.options import Options
from aiki_push.sdk.peer import Peer, check_outcome
from aiki_push.sdk.results import Cancelled, Completed, Failed, Finished, TimedOut
from aiki_push.sdk.run import Run
from aiki_push.sdk.types.json_type import JsonType
from aiki_push.sdk.types.restoring import CannotRestore

O_co = TypeVar("O_co", covariant=True)


class ChildHandle(Peer, Generic[O_co]):
    """A run that the workflow has started, or found by its reference."""

    def __init__(self, calls: Calls, run_id: RunId, output_type: JsonType[O_co], *, workflow: str) -> None:
        super().__init__(calls, run_id)
        self._output_type = output_type
        self._workflow = workflow

    @overload
    async def wait(self) -> Finished[O_co]: ...
    @overload
    async def wait(self, *, timeout: timedelta | None) -> Finished[O_co] | TimedOut: ...

    async def wait(self, *, timeout: timedelta | None = None) -> Finished[O_co] | TimedOut:
        """How the child ended, whatever way; TimedOut where it has not within `timeout` (None: however long it takes).

        Any number of waits, at any time, are given the same end. Raises SettingsError (a timeout that is no length of time).
        """
        longest = None if timeout is None else duration_ms(timeout, name=f"{self._workflow}: timeout")
        message = await self._calls.wait(WaitCall("child", self.id, longest))
        if message is None:
            return TimedOut()
        return Finished(self.id, self._state(message.ending), is_child=True)

    def _state(self, ending: RunEnding | None) -> Completed[O_co] | Failed | Cancelled:
        match ending:
            case RunEnding(state=run_states.Failed(cause=cause), error=RecordedError() as error):
                return Failed(cause, error)
            case RunEnding(state=run_states.Completed(), output=Inline() | PayloadReference() as output):
                return Completed(self._output(self._calls.value_of(output)))
            case RunEnding(state=run_states.Cancelled(), explanation=explanation):
                return Cancelled(explanation)
            case _:
                raise WorkflowError(f"the message of the end of run {self.id} does not say how it ended; upgrade the executor")

    def _output(self, output: Json) -> O_co:
        try:
            return self._output_type.decode(output, at=f"{self._workflow}: output")
        except CannotRestore as error:
            self._calls.cannot_restore(str(error))
            raise


async def start_child(
    run: Run, name: str, version: str, *, options: Options, given: dict[str, Json], digest: str, output_type: JsonType[Any]
) -> ChildHandle[Any]:
    """Start a run of `name` `version` with the input `given`, which has the hash `digest`. Raises ReferenceConflict, SettingsError."""
    content = join_key("child", name, version, options.reference_id or digest)
    fields = options.inheriting(run.options).request_fields(of=f"{name} {version}")

    def request(ordinal: int, own_id: str) -> StartChild:
        asked: dict[str, Json] = {
            "key": content,
            "ordinal": ordinal,
            "run_id": own_id,
            "workflow": name,
            "version": version,
        }
        return StartChild.model_validate(asked | fields | given)

    ended = check_outcome(await run.calls.call_run(RunCall(content, request)))
    return ChildHandle(run.calls, ended.run_id, output_type, workflow=name)
