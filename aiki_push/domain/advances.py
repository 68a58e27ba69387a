"""What a run needs now: the one question behind every hint and every sweep."""

from dataclasses import dataclass
from typing import TypeAlias

from aiki_push.domain.changes import Change, SaveRun
from aiki_push.domain.limits import Limits
from aiki_push.domain.run import Run
from aiki_push.domain.run_states import PARKED, AwaitingRetry, Queued, QueuedReason, Running, Scheduled, Stalled
from aiki_push.domain.run_transitions import Told, enter, keep_in_tail, queue
from aiki_push.domain.values import TimestampMs
from aiki_push.domain.waits import WaitKind

MAX_ADVANCE_DELAY_MS = 3_600_000

_WAKE_REASONS: dict[WaitKind, QueuedReason] = {
    "timer": "wakeup",
    "sleep": "wakeup",
    "event": "event_wait_timeout",
    "child": "child_workflow_wait_timeout",
    "task_retry": "task_retry",
}


@dataclass(frozen=True, slots=True)
class NotDue:
    """Nothing is needed now; at `due_at` something is (None: nothing ever, by itself)."""

    due_at: TimestampMs | None


@dataclass(frozen=True, slots=True)
class NeedsOffer:
    """The run is queued and its next offer is due."""


@dataclass(frozen=True, slots=True)
class NeedsRecovery:
    """The run's owner has not refreshed its claim in time."""


@dataclass(frozen=True, slots=True)
class NeedsChange:
    """The run moves on by itself: these changes do it."""

    changes: tuple[Change, ...]


Need: TypeAlias = NotDue | NeedsOffer | NeedsRecovery | NeedsChange


def need_of(run: Run, now: TimestampMs, limits: Limits) -> Need:
    """What the run needs at `now`."""
    if run.due_at is None or run.due_at > now:
        return NotDue(run.due_at)
    match run.state:
        case Queued():
            return _queued(run, now, limits)
        case Running():
            return NeedsRecovery()
        case Scheduled(scheduled_at=scheduled_at):
            return _line_up(run, "new", scheduled_at, now, limits)
        case AwaitingRetry(next_attempt_at=next_attempt_at):
            return _line_up(run.model_copy(update={"attempts": run.attempts + 1}), "retry", next_attempt_at, now, limits)
        case state if state.status in PARKED:
            return _line_up(run, *_first_deadline(run), now, limits)
        case _:
            return NotDue(None)


def _line_up(run: Run, reason: QueuedReason, time: TimestampMs, now: TimestampMs, limits: Limits) -> Need:
    """Queued since `time`, when it became due, however late that was seen: so runs go in the order of their times.

    Not from so long ago, though, that the run would stall before anyone could take it.
    """
    queued, record = queue(run, Queued(reason=reason), now)
    ready_at = max(min(time, now), now - limits.max_age_ms // 2)
    return NeedsChange(keep_in_tail(queued.model_copy(update={"ready_at": ready_at}), (record,), now))


def _queued(run: Run, now: TimestampMs, limits: Limits) -> Need:
    ready_at = run.ready_at if run.ready_at is not None else now
    if now - ready_at < limits.max_age_ms:
        return NeedsOffer()
    last_error = f"; the last offer failed: {run.offer.last_error}" if run.offer.last_error else ""
    explanation = (
        f"nobody claimed the run within {limits.max_age_ms} ms of being ready, after {run.offer.attempts} offers{last_error}"
    )
    stalled, record = enter(run, Stalled(reason="undelivered"), now, Told(explanation=explanation))
    return NeedsChange(keep_in_tail(stalled, (record,), now))


def _first_deadline(run: Run) -> tuple[QueuedReason, TimestampMs]:
    deadline, wait = min(
        ((wait.deadline_at, wait) for wait in run.waits if wait.deadline_at is not None), key=lambda found: found[0]
    )
    return _WAKE_REASONS[wait.kind], deadline


def decide_delay(run: Run, now: TimestampMs) -> tuple[Change, ...]:
    """After an advance that failed: look again later, twice as late each time, so that one bad item never blocks the others.

    A run that somebody else has advanced meanwhile, and that is not due any more, is left as it is.
    """
    if run.due_at is None or run.due_at > now:
        return ()
    delay_ms = min(5_000 * 2 ** min(run.advance_errors, 20), MAX_ADVANCE_DELAY_MS)
    return (SaveRun(run.model_copy(update={"due_at": now + delay_ms, "advance_errors": run.advance_errors + 1})),)
