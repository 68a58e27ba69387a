"""Offering a queued run: when the next offer is due, and what the last one brought."""

from aiki_push.domain.changes import Change, SaveRun
from aiki_push.domain.limits import Limits
from aiki_push.domain.run import Offer, Run
from aiki_push.domain.run_states import Queued
from aiki_push.domain.values import TimestampMs

MAX_OFFER_ERROR_BYTES = 200


def decide_lease(run: Run, now: TimestampMs, limits: Limits) -> tuple[Change, ...]:
    """Count an offer and keep other deliverers away while it is made."""
    offer = run.offer.model_copy(update={"attempts": run.offer.attempts + 1})
    return (SaveRun(run.model_copy(update={"offer": offer, "due_at": now + limits.offer_lease_ms})),)


def decide_next_offer(run: Run, next_at: TimestampMs, error: str | None, limits: Limits) -> tuple[Change, ...]:
    """The run is offered again at `next_at`, but looked at no later than when it must stall. `error` is shown with the run."""
    ready_at = run.ready_at if run.ready_at is not None else next_at
    offer = Offer(attempts=run.offer.attempts, last_error=_cut(error) if error else None)
    due_at = min(next_at, ready_at + limits.max_age_ms)
    return (SaveRun(run.model_copy(update={"offer": offer, "due_at": due_at, "advance_errors": 0})),)


def decide_offer_now(run: Run, now: TimestampMs) -> tuple[Change, ...]:
    """The next offer of a queued run is due now, unless it is due already."""
    is_waiting = isinstance(run.state, Queued) and run.due_at is not None and run.due_at > now
    return (SaveRun(run.model_copy(update={"due_at": now})),) if is_waiting else ()


def backoff_ms(run: Run, now: TimestampMs, limits: Limits) -> int:
    """The wait before the next offer: as long as the run has been ready, within bounds, so that it doubles each time."""
    age_ms = now - (run.ready_at if run.ready_at is not None else now)
    return max(limits.offer_base_ms, min(age_ms, limits.offer_max_ms))


def _cut(text: str) -> str:
    return text.encode("utf-8", "replace")[:MAX_OFFER_ERROR_BYTES].decode(errors="ignore")
