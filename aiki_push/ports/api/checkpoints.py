"""What an owner writes: records, calls on other runs, and the end of its segment."""

from typing import Annotated, Literal, TypeAlias

from pydantic import Field, TypeAdapter

from aiki_push.domain.inbox import Message
from aiki_push.domain.log_records import CallEnded, Record, RecordedError
from aiki_push.domain.run_states import Cause, Status
from aiki_push.domain.values import Frozen, Identifier, Inline, TimestampMs
from aiki_push.domain.waits import Wait
from aiki_push.ports.api.calls import MAX_CHILD_STARTS, Call
from aiki_push.ports.api.claims import Token
from aiki_push.ports.api.operation import Answer, Operation
from aiki_push.ports.api.runs import RunIdField

MAX_CHECKPOINT_BYTES = 300 * 1024
"""The largest checkpoint: its records as JSON. The executor splits what is larger."""

MAX_WAITS = 10_000
"""What one park tells of. The executor puts what is more together."""


class Complete(Frozen):
    """The workflow returned `output`."""

    to: Literal["completed"] = "completed"
    output: Inline


class Fail(Frozen):
    """The workflow raised and is not tried again."""

    to: Literal["failed"] = "failed"
    cause: Cause
    error: RecordedError


class Retry(Frozen):
    """The workflow raised; its next attempt begins at `next_attempt_at`."""

    to: Literal["awaiting_retry"] = "awaiting_retry"
    cause: Cause
    error: RecordedError
    next_attempt_at: TimestampMs


class Park(Frozen):
    """Every branch waits. `seen_seq` is the highest message seen; a newer one refuses the park, and the answer brings it."""

    to: Literal["parked"] = "parked"
    waits: Annotated[tuple[Wait, ...], Field(min_length=1, max_length=MAX_WAITS)]
    seen_seq: Annotated[int, Field(ge=0)]


class Stall(Frozen):
    """The run cannot go on with this code or this log; `explanation` says why and names both sides."""

    to: Literal["stalled"] = "stalled"
    reason: Literal["diverged", "cannot_restore", "unknown_record"]
    explanation: Annotated[str, Field(max_length=16_384)]


class Yield(Frozen):
    """Hand the run back before the invocation ends, or because its executor was directed to; `explanation` may say what did not fit."""

    to: Literal["yielded"] = "yielded"
    explanation: Annotated[str, Field(max_length=1_024)] | None = None


class HandBack(Frozen):
    """Give up an append that got no definite answer: its slot is taken and the run queued again, in one transaction.

    The checkpoint's records may only be outcomes; nothing that would start an effect.
    """

    to: Literal["queued"] = "queued"


SegmentEnd: TypeAlias = Complete | Fail | Retry | Park | Stall | Yield


class Appended(Answer):
    """The records are in the log. `token` is for the next `position`; `ended` are the outcomes of the calls, in their order."""

    outcome: Literal["appended"] = "appended"
    position: int
    token: str
    ended: tuple[CallEnded, ...] = ()


class Ended(Answer):
    """The segment has ended: the run is in `status` now and no longer the caller's."""

    outcome: Literal["ended"] = "ended"
    status: Status
    revision: int


class InboxMoved(Answer):
    """The park was refused and nothing written: these messages arrived meanwhile."""

    outcome: Literal["inbox_moved"] = "inbox_moved"
    messages: tuple[Message, ...]


class Overtaken(Answer):
    """The hand-back found the append it gave up in its slot: it had arrived. The segment goes on from `position`."""

    outcome: Literal["overtaken"] = "overtaken"
    position: int
    token: str
    ended: tuple[CallEnded, ...] = ()


CheckpointAnswer: TypeAlias = Appended | Ended | InboxMoved | Overtaken


class AppendCheckpoint(Operation[CheckpointAnswer]):
    """Write records at `position`, and end the segment where `end` says so. One checkpoint id is one write, however often it is sent.

    `input`, `transition` and `call_ended` records are refused: those are the server's to write. `calls` (at most 24, of
    which 20 may be other than starts of children; each on another run and with another reference) are carried out in the same
    transaction; they end no segment.
    Raises InvalidToken (not issued for this run, claim and position), RevisionConflict (the run moved on: stop),
    InvalidRequest, PayloadTooLarge, LogFull.
    """

    operation, method, path, role = "append_checkpoint", "POST", "/v1/runs/{run_id}/checkpoints", "executor"
    answer = TypeAdapter[CheckpointAnswer](Annotated[CheckpointAnswer, Field(discriminator="outcome")])

    run_id: RunIdField
    token: Token
    checkpoint_id: Identifier
    position: Annotated[int, Field(ge=0, strict=True)]
    records: Annotated[tuple[Record, ...], Field(max_length=10_000)]
    calls: Annotated[tuple[Annotated[Call, Field(discriminator="kind")], ...], Field(max_length=MAX_CHILD_STARTS)] = ()
    end: Annotated[SegmentEnd | HandBack, Field(discriminator="to")] | None = None
