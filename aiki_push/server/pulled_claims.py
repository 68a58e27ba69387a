"""Claims by pull: the first ready runs of some queues, each claimed and read as by `claims`."""

import logging
from collections.abc import Iterator, Sequence

from pydantic import TypeAdapter

from aiki_push.domain.claims import Claimer
from aiki_push.domain.errors import InternalError, InvalidRequest, NotFound, UnsupportedVersion
from aiki_push.domain.ids import derived_id
from aiki_push.domain.values import DurationMs, RunId
from aiki_push.ports.api.claims import Claimed, ClaimedRuns, ClaimRuns
from aiki_push.ports.store import Queue
from aiki_push.server.claims import MAX_LOG_ANSWER_BYTES, take
from aiki_push.server.context import ServerContext

MAX_QUEUES = 500
SPARE = 50
"""Runs looked at beyond the limit: those before them may be taken by others meanwhile, or be taken already where the index lags."""

_CLAIMED: TypeAdapter[Claimed] = TypeAdapter(Claimed)
_log = logging.getLogger(__name__)


def claim_many(context: ServerContext, namespace: str, request: ClaimRuns) -> ClaimedRuns:
    """The runs that this request holds already, or else the first ready ones, claimed."""
    queues = _queues(namespace, request)
    claims = _claim(context, namespace, request, context.store.claimed_runs(namespace, request.request_id))
    if not claims:
        claims = _claim(context, namespace, request, context.store.ready_runs(*queues, limit=request.limit + SPARE))
    return ClaimedRuns(claims=claims, claim_idle_timeout_ms=DurationMs(context.limits.claim_idle_timeout_ms))


def _queues(namespace: str, request: ClaimRuns) -> Sequence[Queue]:
    pools = request.pools or (None,)
    queues = dict.fromkeys(Queue(namespace, one.name, one.version, pool) for one in request.workflows for pool in pools)
    if len(queues) > MAX_QUEUES:
        message = f"make {len(queues)} queues together, and one request asks {MAX_QUEUES} at most: send several"
        raise InvalidRequest(
            f"workflows and pools {message}", errors=[{"field": field, "message": message} for field in ("workflows", "pools")]
        )
    return tuple(queues)


def _claim(context: ServerContext, namespace: str, request: ClaimRuns, ready: Sequence[RunId]) -> tuple[Claimed, ...]:
    """As many of `ready` as the request and the size of its answer allow, in their order."""
    places = {run_id: place for place, run_id in enumerate(ready)}
    claims = _claimed(context, namespace, request, list(ready))
    return tuple(sorted(claims, key=lambda one: places[one.run.id]))


def _claimed(context: ServerContext, namespace: str, request: ClaimRuns, waiting: list[RunId]) -> Iterator[Claimed]:
    """Claims from the first on; after one that someone else was faster with, from anywhere, so that claimers part ways."""
    bytes_left, claims_left, place = MAX_LOG_ANSWER_BYTES, request.limit, 0
    while waiting and claims_left and bytes_left > 0:
        place %= len(waiting)
        claimed = _take(context, namespace, request, waiting.pop(place), bytes_left)
        if claimed is None:
            place = int(context.entropy.fraction() * len(waiting))
            continue
        claims_left -= 1
        bytes_left -= len(_CLAIMED.dump_json(claimed)) if claimed.log_is_complete else bytes_left
        yield claimed


def _take(context: ServerContext, namespace: str, request: ClaimRuns, run_id: RunId, max_bytes: int) -> Claimed | None:
    """The run, if it can be had. One that cannot be read is left to its own advance, which reports it; it keeps nobody from the rest."""
    claim_id = derived_id("claim", request.request_id, run_id)
    claimer = Claimer(claim_id=claim_id, executor=request.executor, request_id=request.request_id)
    try:
        answer = take(context, namespace, run_id, claimer, max_bytes=max_bytes)
    except NotFound:
        return None
    except (InternalError, UnsupportedVersion):
        _log.exception("run %s is ready and cannot be read", run_id, extra={"aiki.run_id": run_id})
        return None
    return answer if isinstance(answer, Claimed) else None
