"""Answering a push: admit it, execute the run, say how the segment ended."""

import logging
import traceback
from typing import Protocol

from aiki_push.apps.endpoint.admission import Admission
from aiki_push.apps.endpoint.messages import PushAnswer, PushRequest
from aiki_push.domain.errors import AikiError, ServerUnreachable, StorageUnavailable
from aiki_push.domain.push_message import PushData
from aiki_push.domain.values import RunId

_ALREADY_CLAIMED = PushAnswer(200, {"outcome": "already_claimed"})
_UNREACHABLE = PushAnswer(503, {"code": "server_unreachable"})
_UNSETTLED = PushAnswer(500, {"code": "unsettled"})
_INTERNAL = PushAnswer(500, {"code": "internal"})

_log = logging.getLogger(__name__)


class Executed(Protocol):
    """How an execution ended."""

    @property
    def outcome(self) -> str:
        """`already_claimed` or `not_queued`: nothing was executed. `unsettled`: it was abandoned. Any other: settled."""
        ...


class Execute(Protocol):
    """Claims a run and executes it for one segment."""

    async def __call__(self, run_id: RunId, *, revision: int | None, left_ms: float) -> Executed:
        """How it went; what does not fit into `left_ms` is handed back.

        Raises ServerUnreachable or StorageUnavailable: the claim could not be had.
        """
        ...


class PushHandler:
    """Answers pushes. May be called for any number of them at a time, on one event loop.

    `deadline_margin_ms` of each invocation are kept for ending its segment.
    """

    def __init__(self, admission: Admission, execute: Execute, *, deadline_margin_ms: int = 0) -> None:
        self._admission = admission
        self._execute = execute
        self._deadline_margin_ms = deadline_margin_ms

    async def handle(self, request: PushRequest) -> PushAnswer:
        """The answer, once the segment has ended. Raises nothing."""
        admitted = self._admission.admit(request)
        if isinstance(admitted, PushAnswer):
            return admitted
        extra = {"aiki.run_id": admitted.run_id}
        try:
            return await self._executed(admitted, request.left_ms - self._deadline_margin_ms)
        except (ServerUnreachable, StorageUnavailable) as error:
            _log.warning("run %s was not claimed: %s", admitted.run_id, error, extra=extra)
            return _UNREACHABLE
        except AikiError as error:
            _log.error("run %s was not executed: %s", admitted.run_id, error, extra=extra)
            return _INTERNAL
        except Exception as error:  # noqa: BLE001 - the last resort; logged without its message, which may hold the run's values
            places = "".join(traceback.format_tb(error.__traceback__))
            _log.error("executing run %s raised %s at\n%s", admitted.run_id, type(error).__name__, places, extra=extra)
            return _INTERNAL

    async def _executed(self, data: PushData, left_ms: float) -> PushAnswer:
        outcome = (await self._execute(data.run_id, revision=data.revision, left_ms=left_ms)).outcome
        match outcome:
            case "already_claimed" | "not_queued":
                return _ALREADY_CLAIMED
            case "unsettled":
                return _UNSETTLED
            case _:
                return PushAnswer(200, {"outcome": outcome})
