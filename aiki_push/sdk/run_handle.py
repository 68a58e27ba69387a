"""A run, as whoever started it sees it."""

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Generic, TypeVar, overload

from aiki_push.domain import run_states
from aiki_push.domain.durations import duration_ms
from aiki_push.domain.errors import AikiError, SettingsError
from aiki_push.domain.ids import token_text
from aiki_push.domain.values import DurationMs, Inline, RunId
from aiki_push.ports.api.controls import CancelRun, PauseRun, RequeueRun, ResumeRun, WakeUpRun
from aiki_push.ports.api.operation import Operation
from aiki_push.ports.api.runs import MAX_EXPLANATION_LENGTH, GetHistory, GetRun, HistoryEntry, RunView, WaitRun
from aiki_push.sdk.client import Client
from aiki_push.sdk.names import check_name
from aiki_push.sdk.results import Cancelled, Completed, Failed, Finished, TimedOut
from aiki_push.sdk.types.json_type import JsonType

O_co = TypeVar("O_co", covariant=True)

LONGEST_POLL_S = 20.0
FIRST_PAUSE_S = 0.25
LONGEST_PAUSE_S = 5.0
QUICK_ANSWER_S = 1.5
"""A server that answers a wait sooner than this, undone, holds no requests: the client pauses between its questions."""


class Handle(Generic[O_co]):
    """A run. `run` is what was last known of it."""

    def __init__(self, client: Client, run: RunView, output_type: JsonType[O_co]) -> None:
        self._client = client
        self._output_type = output_type
        self.run = run

    def __repr__(self) -> str:
        return f"Handle({self.run.id}, {self.run.state.status})"

    @property
    def id(self) -> RunId:
        """The run's id."""
        return self.run.id

    @property
    def client(self) -> Client:
        """The client that the run was started or found with."""
        return self._client

    async def refresh(self) -> RunView:
        """Read the run again. Raises NotFound."""
        self.run = await self._client.api.call(GetRun(run_id=self.id))
        return self.run

    @overload
    async def wait(self) -> Finished[O_co]: ...
    @overload
    async def wait(self, *, timeout: timedelta | None) -> Finished[O_co] | TimedOut: ...

    async def wait(self, *, timeout: timedelta | None = None) -> Finished[O_co] | TimedOut:
        """How the run ended, as soon as it has; TimedOut after `timeout` of wall-clock time (None: however long it takes).

        A run that is known to have ended is answered at once. At the deadline a request in flight is cut off, however slow the
        server is. Raises NotFound, ServerUnreachable, SettingsError (a timeout that is no length of time).
        """
        seconds = None if timeout is None else duration_ms(timeout, name="timeout") / 1_000
        deadline = asyncio.timeout(seconds)
        try:
            async with deadline:
                return await self._wait_for_end(deadline.when())
        except TimeoutError:
            if not deadline.expired():
                raise
            return TimedOut()

    async def _wait_for_end(self, until: float | None) -> Finished[O_co]:
        time, pause_s = asyncio.get_running_loop().time, FIRST_PAUSE_S
        while self.run.state.status not in run_states.TERMINAL:
            asked = time()
            held_s = LONGEST_POLL_S if until is None else max(0.0, min(LONGEST_POLL_S, until - asked))
            self.run = await self._client.api.call(WaitRun(run_id=self.id, timeout_ms=DurationMs(int(held_s * 1_000))))
            has_ended = self.run.state.status in run_states.TERMINAL
            if not has_ended and time() - asked < min(QUICK_ANSWER_S, held_s):
                await asyncio.sleep(pause_s)
                pause_s = min(2 * pause_s, LONGEST_PAUSE_S)
        return Finished(self.id, self._end_state())

    def _end_state(self) -> Completed[O_co] | Failed | Cancelled:
        run = self.run
        match run.state:
            case run_states.Completed():
                output = run.output.value if isinstance(run.output, Inline) else None
                return Completed(self._output_type.decode(output, at=f"{run.workflow}: output"))
            case run_states.Failed(cause=cause) if run.error is not None:
                return Failed(cause, run.error)
            case run_states.Cancelled():
                return Cancelled(run.explanation)
            case other:
                raise AikiError(f"run {run.id} is {other.status} but the server's answer lacks how it ended; upgrade the server")

    async def pause(self) -> RunView:
        """Stop the run until it is resumed; a task that is being executed is cut off without using an attempt.

        Where `run.directive` says so, a busy executor does it within a second or so. Raises IllegalTransition for a run that has
        ended, or is stalled or paused.
        """
        return await self._control(PauseRun(run_id=self.id, operation_id=self._operation_id()))

    async def resume(self) -> RunView:
        """Let the paused run go on where it was. Raises IllegalTransition for a run that is not paused."""
        return await self._control(ResumeRun(run_id=self.id, operation_id=self._operation_id()))

    async def cancel(self, explanation: str | None = None) -> RunView:
        """End the run, and then the runs that it has started. `explanation` is told to whoever waits for it.

        Where `run.directive` says so, a busy executor does it within a second or so. Raises IllegalTransition for a run that has
        ended, SettingsError for an explanation that is no str of 1 to 1 024 characters.
        """
        if explanation is not None and not (isinstance(explanation, str) and 0 < len(explanation) <= MAX_EXPLANATION_LENGTH):
            raise SettingsError(f"explanation must be a str of 1 to {MAX_EXPLANATION_LENGTH} characters, or None")
        return await self._control(CancelRun(run_id=self.id, operation_id=self._operation_id(), explanation=explanation))

    async def wakeup(self, name: str | None = None) -> RunView:
        """End the sleeps named `name`, or all of them, that the run is in now.

        Raises IllegalTransition for a run that is parked on no such sleep, or is not under way; SettingsError for what is no name.
        """
        if name is not None:
            check_name(name, what="sleep")
        return await self._control(WakeUpRun(run_id=self.id, operation_id=self._operation_id(), sleep=name))

    async def requeue(self) -> RunView:
        """Put the run back in its queue, once what stalled it is mended. Raises IllegalTransition for a run that is not stalled."""
        return await self._control(RequeueRun(run_id=self.id, operation_id=self._operation_id()))

    async def _control(self, operation: Operation[RunView]) -> RunView:
        self.run = await self._client.api.call(operation)
        return self.run

    def _operation_id(self) -> str:
        return token_text(self._client.entropy.token(15))

    async def history(self) -> AsyncIterator[HistoryEntry]:
        """What the run did, oldest first, as far as it is recorded now."""
        cursor: str | None = None
        while True:
            page = await self._client.api.call(GetHistory(run_id=self.id, cursor=cursor))
            for entry in page.entries:
                yield entry
            if page.next_cursor is None:
                return
            cursor = page.next_cursor
