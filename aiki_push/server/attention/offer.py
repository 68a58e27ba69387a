"""Offering ready runs to whoever may execute them."""

from collections.abc import Sequence

from aiki_push.domain.errors import InternalError, NotFound, UnsupportedVersion
from aiki_push.domain.limits import Limits
from aiki_push.domain.offers import backoff_ms, decide_lease, decide_next_offer
from aiki_push.domain.run import Run
from aiki_push.domain.run_states import Queued
from aiki_push.domain.values import TimestampMs
from aiki_push.ports.publisher import Declined, Deferred, Failed, Outcome, Published, Publisher, ReadyRun
from aiki_push.ports.store import CommitRefused, Queue
from aiki_push.server.context import ServerContext

BATCH = 10
"""How many runs of one queue are offered together."""


def offer(context: ServerContext, publisher: Publisher, run: Run) -> None:
    """Offer the first runs of the queue that `run` is in, of those whose offer is due, as `run`'s is. It goes when it is its turn."""
    leased = [ready for due in _due(context, run) if (ready := _lease(context, due))]
    if not leased:
        return
    outcomes = publisher.publish([_ready_run(one) for one in leased])
    for one, outcome in zip(leased, outcomes, strict=True):
        _settle(context, one, outcome)


def _due(context: ServerContext, run: Run) -> Sequence[Run]:
    now = context.clock.now()
    queue = Queue(run.namespace, run.workflow, run.version, run.options.pool)
    first = context.store.load_many(run.namespace, context.store.due_offers(queue, until=now, limit=BATCH))
    due = [one for one in first if isinstance(one.state, Queued) and one.due_at is not None and one.due_at <= now]
    # The index may lag, is not read to the end of a long queue, and may name runs that cannot be read.
    if len(due) < BATCH and all(one.id != run.id for one in due):
        due.append(run)
    return sorted(due, key=lambda one: (one.ready_at or 0, one.options.priority, one.id))


def _load(context: ServerContext, namespace: str, run_id: str) -> Run | None:
    """The run, or None where it is gone or cannot be read: a damaged run is reported by its own advance and blocks no other."""
    try:
        return context.store.load(namespace, run_id)
    except (NotFound, InternalError, UnsupportedVersion):
        return None


def _lease(context: ServerContext, run: Run) -> Run | None:
    """The run as leased, or None where someone else was faster."""
    changes = decide_lease(run, context.clock.now(), context.limits)
    try:
        context.store.commit(*changes)
    except CommitRefused:
        return None
    return run.model_copy(update={"offer": run.offer.model_copy(update={"attempts": run.offer.attempts + 1})})


def _ready_run(run: Run) -> ReadyRun:
    return ReadyRun(
        namespace=run.namespace,
        run_id=run.id,
        workflow=run.workflow,
        version=run.version,
        pool=run.options.pool,
        priority=run.options.priority,
        revision=run.revision,
        ready_at=run.ready_at or run.created_at,
        offer=run.offer.attempts,
    )


def _settle(context: ServerContext, leased: Run, outcome: Outcome) -> None:
    """Keep what the offer brought, if the run is still waiting: mostly it is claimed before the publisher returns."""
    run = _load(context, leased.namespace, leased.id)
    if run is None or run.revision != leased.revision or run.offer.attempts != leased.offer.attempts:
        return
    next_at, error = _next(run, outcome, context.clock.now(), context.limits)
    try:
        context.commit(decide_next_offer(run, next_at, error, context.limits))
    except CommitRefused:
        return


def _next(run: Run, outcome: Outcome, now: TimestampMs, limits: Limits) -> tuple[TimestampMs, str | None]:
    """When to offer the run again, and what to show of this offer."""
    match outcome:
        case Published():
            return TimestampMs(now + backoff_ms(run, now, limits)), None
        case Failed(error=error):
            return TimestampMs(now + backoff_ms(run, now, limits)), error
        case Deferred(until=until):
            return until, None
        case Declined(has_route=True):
            return TimestampMs(now + limits.declined_ms), "every endpoint declined the run's version"
        case Declined():
            return TimestampMs(now + limits.max_age_ms), "no endpoint is registered for the run's workflow, version and pool"
