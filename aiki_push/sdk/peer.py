"""Another run, as a workflow sees it."""

import re
from typing import Literal

from aiki_push.domain.errors import API_ERRORS, ApiError, SettingsError
from aiki_push.domain.ids import join_key
from aiki_push.domain.log_records import CallEnded
from aiki_push.domain.values import RUN_ID_PATTERN, RunId
from aiki_push.ports.api.calls import ControlRun
from aiki_push.ports.api.runs import MAX_EXPLANATION_LENGTH
from aiki_push.sdk.calls import Calls, RunCall
from aiki_push.sdk.names import check_name

_EXPLANATION = rf"[^\ud800-\udfff]{{1,{MAX_EXPLANATION_LENGTH}}}"
"""Any text that UTF-8 can hold: no half of a surrogate pair."""


class Peer:
    """Another run. What a workflow does to it is recorded, and done exactly once."""

    def __init__(self, calls: Calls, run_id: RunId) -> None:
        self._calls = calls
        self.id = run_id

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.id})"

    @property
    def calls(self) -> Calls:
        """Where durable calls go; for events, not for workflows."""
        return self._calls

    async def pause(self) -> None:
        """Stop the run until it is resumed. Raises NotFound, IllegalTransition (it has ended, is stalled or paused)."""
        await self._control("pause")

    async def resume(self) -> None:
        """Let the paused run go on where it was. Raises NotFound, IllegalTransition (it is not paused)."""
        await self._control("resume")

    async def cancel(self, explanation: str | None = None) -> None:
        """End the run, and what it has started. Raises NotFound, IllegalTransition (it has ended), SettingsError."""
        if explanation is not None:
            check_explanation(explanation)
        await self._control("cancel", explanation=explanation)

    async def wakeup(self, name: str | None = None) -> None:
        """End the sleeps that the run is in now, or those with this name.

        Raises NotFound, IllegalTransition (it is in no such sleep), SettingsError.
        """
        if name is not None:
            check_name(name, what="sleep")
        await self._control("wakeup", sleep=name)

    async def _control(
        self, kind: Literal["cancel", "pause", "resume", "wakeup"], *, explanation: str | None = None, sleep: str | None = None
    ) -> None:
        content = join_key(kind, self.id, sleep or "")

        def request(ordinal: int, own_id: str) -> ControlRun:
            return ControlRun(
                kind=kind,
                key=content,
                ordinal=ordinal,
                run_id=self.id,
                operation_id=own_id,
                explanation=explanation,
                sleep=sleep,
            )

        check_outcome(await self._calls.call_run(RunCall(content, request)))


def check_outcome(ended: CallEnded) -> CallEnded:
    """The outcome of a call. Raises the ApiError that it was refused with."""
    if ended.error is not None:
        raise API_ERRORS.get(ended.error.code, ApiError)(ended.error.detail, run_id=ended.run_id)
    return ended


def check_explanation(explanation: object) -> None:
    """Raises SettingsError for what cannot explain a cancellation."""
    if not isinstance(explanation, str) or re.fullmatch(_EXPLANATION, explanation) is None:
        raise SettingsError(f"explanation must be a str of 1 to {MAX_EXPLANATION_LENGTH} characters, or None")


def check_run_id(run_id: object, at: str) -> RunId:
    """`run_id`, which may come from anywhere. Raises SettingsError; `at` names the place."""
    if not isinstance(run_id, str) or re.fullmatch(RUN_ID_PATTERN, run_id) is None:
        given = "" if isinstance(run_id, str) else f"; it is {type(run_id).__name__}"
        raise SettingsError(f"{at} must be the id of a run, a ULID of 26 digits and capital letters{given}")
    return RunId(run_id)
