"""What an owner writes: appends to the log, and the transition that ends its segment."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from aiki_push.domain.changes import Change, PutSlot
from aiki_push.domain.claims import Owner, check_owner
from aiki_push.domain.controls import let_go, obeying
from aiki_push.domain.follow_ups import with_duties
from aiki_push.domain.limits import Limits
from aiki_push.domain.log_records import AnyRecord, LogSlot, RecordedError, Tail, Transition
from aiki_push.domain.run import LastWrite, Run
from aiki_push.domain.run_states import AwaitingRetry, Cause, Completed, Failed, RunState, Stalled, StalledReason
from aiki_push.domain.run_transitions import Told, enter, is_terminal, keep_in_tail, seal
from aiki_push.domain.values import StoredValue, TimestampMs
from aiki_push.domain.waits import Wait, collapsed, earliest_deadline, parked_state


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """Records of one owner for one position. `is_first`: nothing was appended under this claim yet, so the tail is unsealed."""

    owner: Owner
    checkpoint_id: str
    position: int
    is_first: bool
    records: tuple[AnyRecord, ...]

    @property
    def last_write(self) -> LastWrite:
        """What the header or slot remembers, so that a repetition is recognised."""
        return LastWrite(checkpoint_id=self.checkpoint_id, claim_id=self.owner.claim_id)


@dataclass(frozen=True, slots=True)
class CompleteRun:
    """The workflow returned `output`."""

    output: StoredValue


@dataclass(frozen=True, slots=True)
class FailRun:
    """The workflow raised, for the last time."""

    cause: Cause
    error: RecordedError


@dataclass(frozen=True, slots=True)
class RetryRun:
    """The workflow raised, and its next attempt begins at `next_attempt_at`."""

    cause: Cause
    error: RecordedError
    next_attempt_at: TimestampMs


@dataclass(frozen=True, slots=True)
class ParkRun:
    """Every branch waits, for `waits`, and has seen every message up to `seen_seq`."""

    waits: tuple[Wait, ...]
    seen_seq: int


@dataclass(frozen=True, slots=True)
class StallRun:
    """The run cannot go on until someone mends what `explanation` says."""

    reason: StalledReason
    explanation: str


@dataclass(frozen=True, slots=True)
class YieldRun:
    """The owner hands the run back; `explanation` may say what did not fit into its invocation."""

    explanation: str | None = None


FinalEnd: TypeAlias = CompleteRun | FailRun | RetryRun | ParkRun | StallRun
RunEnd: TypeAlias = FinalEnd | YieldRun


def append(namespace: str, run_id: str, checkpoint: Checkpoint, tail: Sequence[AnyRecord], now: TimestampMs) -> PutSlot:
    """One slot with the checkpoint's records; the first of a segment begins with the `tail`'s, which it seals."""
    slot = LogSlot(
        position=checkpoint.position,
        records=(*tail, *checkpoint.records),
        revision=checkpoint.owner.revision,
        at=now,
        claim_id=checkpoint.owner.claim_id,
        checkpoint_id=checkpoint.checkpoint_id,
    )
    return PutSlot(namespace, run_id, slot)


def is_repeated(run: Run, checkpoint: Checkpoint) -> bool:
    """Whether the run's latest transition was made by this very checkpoint: its answer was lost."""
    return run.last_write == checkpoint.last_write


def decide_end(run: Run, checkpoint: Checkpoint, end: RunEnd, now: TimestampMs, limits: Limits) -> tuple[Change, ...]:
    """End the segment: the header's new state, with the checkpoint's records and the transition at the end of the log.

    Where the run is to be paused or cancelled, that is done in the same write: on top of the state that `end` leaves the run in,
    or in place of queued(yield). Raises RevisionConflict.
    """
    claim = check_owner(run, checkpoint.owner)
    match end:
        case YieldRun():
            ended, records = _yielded(run, checkpoint, end, now, limits, claim.executor)
        case _:
            ended, records = _ended(run, end, now, claim.executor)
    tail = run.tail if checkpoint.is_first else Tail(position=checkpoint.position, records=())
    ended = ended.model_copy(update={"tail": tail, "last_write": checkpoint.last_write})
    return keep_in_tail(ended, (*checkpoint.records, *records), now)


def _ended(run: Run, end: FinalEnd, now: TimestampMs, executor: str) -> tuple[Run, tuple[Transition, ...]]:
    ended, record = enter(run, _state(end), now, _told(end, executor))
    ended = with_duties(ended, now) if is_terminal(ended) else ended.model_copy(update=_kept(end))
    return obeying(ended.model_copy(update={"recoveries": 0}), record, run.directive, now)


def _yielded(
    run: Run, checkpoint: Checkpoint, end: YieldRun, now: TimestampMs, limits: Limits, executor: str
) -> tuple[Run, tuple[Transition, ...]]:
    """A yield without progress counts like a recovery without any, unless it was directed."""
    has_progressed = bool(checkpoint.records) or not checkpoint.is_first
    is_counted = not has_progressed and run.directive is None
    recoveries = 0 if has_progressed else run.recoveries + is_counted
    if is_counted and recoveries >= limits.max_recoveries:
        left, record = _stalled(run, end, recoveries, now, executor)
    else:
        left, record = let_go(run, "yield", now, executor)
    return left.model_copy(update={"recoveries": recoveries}), (record,)


def _stalled(run: Run, end: YieldRun, recoveries: int, now: TimestampMs, executor: str) -> tuple[Run, Transition]:
    why = f": {end.explanation}" if end.explanation else ""
    explanation = f"{recoveries} executors in a row gave the run up before they could record anything; the last, {executor}{why}"
    return enter(run, Stalled(reason="crash_loop"), now, Told(executor=executor, explanation=explanation))


def decide_hand_back(run: Run, checkpoint: Checkpoint, now: TimestampMs) -> tuple[Change, ...]:
    """running → queued(yield), or as directed, taking the slot of an append that got no answer: it arrives before this or never.

    A plain write of the header could set the tail over a slot that exists or still arrives, and hide its records.
    Raises RevisionConflict.
    """
    claim = check_owner(run, checkpoint.owner)
    left, record = let_go(run, "yield", now, claim.executor)
    left = left.model_copy(update={"last_write": checkpoint.last_write, "recoveries": 0})
    unsealed = run.tail.records if checkpoint.is_first else ()
    return seal(left, checkpoint.position, (*unsealed, *checkpoint.records, record), now, checkpoint.last_write)


def _kept(end: FinalEnd) -> dict[str, object]:
    """What the header keeps of the state that the run is left in."""
    match end:
        case ParkRun(waits=waits, seen_seq=seen_seq):
            return {
                "waits": collapsed(waits),
                "seen_seq": seen_seq,
                "open_child_waits": len({wait.key for wait in waits if wait.kind == "child"}),
                "due_at": earliest_deadline(waits),
            }
        case RetryRun(next_attempt_at=next_attempt_at):
            return {"due_at": next_attempt_at}
        case _:
            return {}


def _state(end: FinalEnd) -> RunState:
    match end:
        case CompleteRun():
            return Completed()
        case FailRun(cause=cause):
            return Failed(cause=cause)
        case RetryRun(cause=cause, next_attempt_at=next_attempt_at):
            return AwaitingRetry(cause=cause, next_attempt_at=next_attempt_at)
        case ParkRun(waits=waits):
            return parked_state(waits)
        case StallRun(reason=reason):
            return Stalled(reason=reason)


def _told(end: FinalEnd, executor: str) -> Told:
    match end:
        case CompleteRun(output=output):
            return Told(executor=executor, output=output)
        case FailRun(error=error) | RetryRun(error=error):
            return Told(executor=executor, error=error)
        case StallRun(explanation=explanation):
            return Told(executor=executor, explanation=explanation)
        case ParkRun():
            return Told(executor=executor)
