"""How executions end, in a word: what an endpoint answers a push with."""

import logging
from typing import Literal, TypeAlias

from aiki_push.domain.run_states import Status
from aiki_push.ports.api.checkpoints import Complete, Fail, Park, Retry, SegmentEnd, Stall, Yield
from aiki_push.ports.api.claims import Claimed

Outcome: TypeAlias = Literal[
    "completed",
    "failed",
    "retrying",
    "parked",
    "yielded",
    "released",
    "stalled",
    "stopped",
    "lost",
    "already_claimed",
    "not_queued",
    "unsettled",
]
"""`unsettled`: nobody knows yet; the claim goes stale and the run is recovered."""

_log = logging.getLogger(__name__)


def outcome_of(claimed: Claimed, end: SegmentEnd, status: Status | None) -> Outcome:
    """The outcome of a segment that ended by `end` and left its run in `status`. What went wrong is logged, without the error's message."""
    if status in ("paused", "cancelled"):
        return "stopped"
    match end:
        case Complete():
            return "completed"
        case Retry():
            return "retrying"
        case Park():
            return "parked"
        case Fail(error=error):
            _tell(claimed, f"failed by {error.name}")
            return "failed"
        case Stall(reason=reason):
            _tell(claimed, f"is stalled ({reason})")
            return "stalled"
        case Yield():
            return "stalled" if status == "stalled" else "yielded"


def _tell(claimed: Claimed, what: str) -> None:
    """Say it in the log, without the message: what an error quotes is the run's own business."""
    run = claimed.run
    _log.warning(
        "run %s of %s %s %s; its history says more", run.id, run.workflow, run.version, what, extra={"aiki.run_id": run.id}
    )
