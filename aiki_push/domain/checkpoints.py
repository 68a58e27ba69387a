"""What an owner writes: appends to the log, and the transition that ends its segment."""

from collections.abc import Sequence
from dataclasses import dataclass

from aiki_push.domain.changes import Change, PutSlot
from aiki_push.domain.claims import Owner, check_owner
from aiki_push.domain.log_records import AnyRecord, LogSlot, RecordedError, Tail
from aiki_push.domain.run import LastWrite, Run
from aiki_push.domain.run_states import AwaitingRetry, Cause, Completed, Failed, Queued, RunState, Stalled, StalledReason
from aiki_push.domain.run_transitions import Told, enter, keep_in_tail, queue, seal
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
    """Every branch waits, for `waits`."""

    waits: tuple[Wait, ...]


@dataclass(frozen=True, slots=True)
class StallRun:
    """The run cannot go on until someone mends what `explanation` says."""

    reason: StalledReason
    explanation: str


RunEnd = CompleteRun | FailRun | RetryRun | ParkRun | StallRun


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


def decide_end(run: Run, checkpoint: Checkpoint, end: RunEnd, now: TimestampMs) -> tuple[Change, ...]:
    """End the segment: the header's new state, with the checkpoint's records and the transition at the end of the log.

    Raises RevisionConflict.
    """
    claim = check_owner(run, checkpoint.owner)
    ended, record = enter(run, _state(end), now, _told(end, claim.executor))
    due_at = _due_at(end)
    waits = collapsed(end.waits) if isinstance(end, ParkRun) else ()
    tail = run.tail if checkpoint.is_first else Tail(position=checkpoint.position, records=())
    written = {"tail": tail, "waits": waits, "due_at": due_at, "last_write": checkpoint.last_write, "recoveries": 0}
    ended = ended.model_copy(update=written)
    return keep_in_tail(ended, (*checkpoint.records, record), now)


def decide_hand_back(run: Run, checkpoint: Checkpoint, now: TimestampMs) -> tuple[Change, ...]:
    """running → queued(yield), taking the slot of an append that got no answer: it arrives before this or never.

    A plain write of the header could set the tail over a slot that exists or still arrives, and hide its records.
    Raises RevisionConflict.
    """
    claim = check_owner(run, checkpoint.owner)
    queued, record = queue(run, Queued(reason="yield"), now, Told(executor=claim.executor))
    queued = queued.model_copy(update={"last_write": checkpoint.last_write, "recoveries": 0})
    unsealed = run.tail.records if checkpoint.is_first else ()
    return seal(queued, checkpoint.position, (*unsealed, *checkpoint.records, record), now, checkpoint.last_write)


def _due_at(end: RunEnd) -> TimestampMs | None:
    match end:
        case ParkRun(waits=waits):
            return earliest_deadline(waits)
        case RetryRun(next_attempt_at=next_attempt_at):
            return next_attempt_at
        case _:
            return None


def _state(end: RunEnd) -> RunState:
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


def _told(end: RunEnd, executor: str) -> Told:
    match end:
        case CompleteRun(output=output):
            return Told(executor=executor, output=output)
        case FailRun(error=error) | RetryRun(error=error):
            return Told(executor=executor, error=error)
        case StallRun(explanation=explanation):
            return Told(executor=executor, explanation=explanation)
        case ParkRun():
            return Told(executor=executor)
