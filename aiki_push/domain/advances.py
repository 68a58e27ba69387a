"""What a run needs now: the one question behind every hint and every sweep."""

from dataclasses import dataclass
from typing import TypeAlias

from aiki_push.domain.changes import Change, SaveRun
from aiki_push.domain.limits import Limits
from aiki_push.domain.run import Run
from aiki_push.domain.run_states import PARKED, TERMINAL, AwaitingRetry, Queued, QueuedReason, Running, Scheduled, Stalled
from aiki_push.domain.run_transitions import Told, enter, keep_in_tail, queue, ready_since
from aiki_push.domain.values import TimestampMs
from aiki_push.domain.waits import Wait, WaitKind

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
class NeedsFollowUp:
    """The run has ended, and its duties are left."""


@dataclass(frozen=True, slots=True)
class NeedsChange:
    """The run moves on by itself: these changes do it."""

    changes: tuple[Change, ...]


Need: TypeAlias = NotDue | NeedsOffer | NeedsRecovery | NeedsFollowUp | NeedsChange


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
            return _line_up(run, *_woken_by(run, run.due_at), now, limits)
        case state if state.status in TERMINAL and run.duties:
            return NeedsFollowUp()
        case _:
            return NotDue(None)


def _line_up(run: Run, reason: QueuedReason, time: TimestampMs, now: TimestampMs, limits: Limits) -> Need:
    """Queued since `time`, when it became due, however late that was seen: so runs go in the order of their times."""
    queued, record = queue(run, Queued(reason=reason), now)
    queued = queued.model_copy(update={"ready_at": ready_since(time, now, limits)})
    return NeedsChange(keep_in_tail(queued, (record,), now))


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


def _woken_by(run: Run, due_at: TimestampMs) -> tuple[QueuedReason, TimestampMs]:
    """What a parked run is woken by that is due at `due_at`, and when that was.

    Earlier than every deadline, it is the end of the time in which ends of children were gathered. A delay after a failed
    advance only makes `due_at` later: past a deadline, that is what wakes the run.
    """
    first = _first_deadline(run.waits)
    if first is None or first[0] > due_at:
        return "child_workflow", due_at
    deadline, wait = first
    return _WAKE_REASONS[wait.kind], deadline


def _first_deadline(waits: tuple[Wait, ...]) -> tuple[TimestampMs, Wait] | None:
    deadlines = ((wait.deadline_at, wait) for wait in waits if wait.deadline_at is not None)
    return min(deadlines, key=lambda found: found[0], default=None)


def decide_delay(run: Run, now: TimestampMs) -> tuple[Change, ...]:
    """After an advance that failed: look again later, twice as late each time, so that one bad item never blocks the others.

    A run that somebody else has advanced meanwhile, and that is not due any more, is left as it is.
    """
    if run.due_at is None or run.due_at > now:
        return ()
    delay_ms = min(5_000 * 2 ** min(run.advance_errors, 20), MAX_ADVANCE_DELAY_MS)
    return (SaveRun(run.model_copy(update={"due_at": now + delay_ms, "advance_errors": run.advance_errors + 1})),)
