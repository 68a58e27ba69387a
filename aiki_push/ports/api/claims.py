"""What executors call to own runs, and while they do: claim, read, checkpoint, refresh, release."""

from typing import Annotated, Literal, TypeAlias

from pydantic import Field, TypeAdapter

from aiki_push.domain.inbox import Message
from aiki_push.domain.log_records import LogSlot, Record, RecordedError, Tail
from aiki_push.domain.run import RunOptions
from aiki_push.domain.run_states import Cause, Status
from aiki_push.domain.values import DurationMs, Frozen, Identifier, Inline, Name, RunId, TimestampMs
from aiki_push.domain.waits import Wait
from aiki_push.ports.api.endpoints import WorkflowVersionField
from aiki_push.ports.api.operation import Answer, Operation
from aiki_push.ports.api.runs import RunIdField

MAX_CHECKPOINT_BYTES = 300 * 1024
"""The largest checkpoint: its records as JSON. The executor splits what is larger."""

Token = Annotated[str, Field(min_length=1, max_length=1024)]
Executor = Annotated[str, Field(min_length=1, max_length=128)]


class ClaimedRun(Answer):
    """The run as its new owner needs it."""

    id: RunId
    workflow: str
    version: str
    revision: int
    attempts: int
    options: RunOptions
    created_at: TimestampMs


class Claimed(Answer):
    """The caller owns the run now. `token` proves it and binds the next write to `position`.

    `slots` are the log so far; where `log_is_complete` is False, GetLog has the rest. `tail` are its last records, not yet
    a slot: the server puts them in front of the segment's first append.
    `now` is the server's time; `claim_idle_timeout_ms` is how long the claim lives without a refresh.
    """

    claimed: Literal[True] = True
    run: ClaimedRun
    slots: tuple[LogSlot, ...]
    log_is_complete: bool
    tail: Tail
    messages: tuple[Message, ...]
    position: int
    token: str
    now: TimestampMs
    claim_idle_timeout_ms: DurationMs


class NotClaimed(Answer):
    """Someone else has the run, or it is not ready. An ordinary answer, not an error."""

    claimed: Literal[False] = False
    reason: Literal["already_claimed", "not_queued"]


ClaimAnswer: TypeAlias = Claimed | NotClaimed


class ClaimRun(Operation[ClaimAnswer]):
    """Take a queued run, at `revision` where given (a push names it, so a replayed push cannot claim again).

    Repeating a request whose answer was lost, with the same `claim_id`, gives the same claim while it is current. Raises NotFound.
    """

    operation, method, path, role = "claim_run", "POST", "/v1/runs/{run_id}/claim", "executor"
    answer = TypeAdapter[ClaimAnswer](Annotated[ClaimAnswer, Field(discriminator="claimed")])

    run_id: RunIdField
    claim_id: Identifier
    executor: Executor
    revision: Annotated[int, Field(ge=0, strict=True)] | None = None


class ClaimedRuns(Answer):
    """The runs that the caller owns now, in the order in which they became due. None: nothing is ready."""

    claims: tuple[Claimed, ...]
    claim_idle_timeout_ms: DurationMs


class ClaimRuns(Operation[ClaimedRuns]):
    """Take the first ready runs of these workflow versions, in these `pools` (none: runs without a pool), `limit` at most.

    First come those that became due first, then those with the lowest priority number, then the oldest. Fewer are answered where
    their logs are large. Repeating a request whose answer was lost, with the same `request_id`, gives the same claims while they
    are current.
    Raises InvalidRequest (more than 500 combinations of workflow version and pool).
    """

    operation, method, path, role = "claim_runs", "POST", "/v1/claims", "executor"
    answer = TypeAdapter[ClaimedRuns](ClaimedRuns)

    request_id: Identifier
    executor: Executor
    workflows: Annotated[tuple[WorkflowVersionField, ...], Field(min_length=1, max_length=100)]
    pools: Annotated[tuple[Name, ...], Field(max_length=20)] = ()
    limit: Annotated[int, Field(ge=1, le=100, strict=True)] = 1


class LogAnswer(Answer):
    """Slots in order; `is_last` is False while more follow."""

    slots: tuple[LogSlot, ...]
    is_last: bool


class GetLog(Operation[LogAnswer]):
    """Read the log's slots after position `after`. Raises NotFound."""

    operation, method, path, role = "get_log", "GET", "/v1/runs/{run_id}/log", "executor"
    answer = TypeAdapter[LogAnswer](LogAnswer)

    run_id: RunIdField
    after: Annotated[int, Field(ge=-1)] = -1


class Inbox(Answer):
    """Messages in order, and where the run stands."""

    messages: tuple[Message, ...]
    inbox_seq: int
    status: Status
    revision: int


class GetInbox(Operation[Inbox]):
    """Read the messages numbered above `after`, and the run's status and revision. Raises NotFound."""

    operation, method, path, role = "get_inbox", "GET", "/v1/runs/{run_id}/inbox", "executor"
    answer = TypeAdapter[Inbox](Inbox)

    run_id: RunIdField
    after: Annotated[int, Field(ge=0)] = 0


class Refreshed(Answer):
    """The claim lives on from `refreshed_at`."""

    refreshed_at: TimestampMs
    claim_idle_timeout_ms: DurationMs


class RefreshClaim(Operation[Refreshed]):
    """Say that the executor is alive. Raises RevisionConflict once the run moved on, InvalidToken."""

    operation, method, path, role = "refresh_claim", "POST", "/v1/runs/{run_id}/claim/refresh", "executor"
    answer = TypeAdapter[Refreshed](Refreshed)

    run_id: RunIdField
    token: Token


class Released(Answer):
    """The run is back in its queue."""

    revision: int


class ReleaseClaim(Operation[Released]):
    """Hand back a run of which nothing was executed. Raises RevisionConflict, InvalidToken, IllegalTransition (something was written)."""

    operation, method, path, role = "release_claim", "POST", "/v1/runs/{run_id}/claim/release", "executor"
    answer = TypeAdapter[Released](Released)

    run_id: RunIdField
    token: Token


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
    waits: Annotated[tuple[Wait, ...], Field(min_length=1, max_length=10_000)]
    seen_seq: Annotated[int, Field(ge=0)]


class Stall(Frozen):
    """The run cannot go on with this code or this log; `explanation` says why and names both sides."""

    to: Literal["stalled"] = "stalled"
    reason: Literal["diverged", "cannot_restore", "unknown_record"]
    explanation: Annotated[str, Field(max_length=16_384)]


class HandBack(Frozen):
    """Give up an append that got no definite answer: its slot is taken and the run queued again, in one transaction.

    The checkpoint's records may only be outcomes; nothing that would start an effect.
    """

    to: Literal["queued"] = "queued"


SegmentEnd: TypeAlias = Complete | Fail | Retry | Park | Stall


class Appended(Answer):
    """The records are in the log. `token` is for the next `position`."""

    outcome: Literal["appended"] = "appended"
    position: int
    token: str


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


CheckpointAnswer: TypeAlias = Appended | Ended | InboxMoved | Overtaken


class AppendCheckpoint(Operation[CheckpointAnswer]):
    """Write records at `position`, and end the segment where `end` says so. One checkpoint id is one write, however often it is sent.

    `input` and `transition` records are refused: those are the server's to write.
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
    end: Annotated[SegmentEnd | HandBack, Field(discriminator="to")] | None = None
