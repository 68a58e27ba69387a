"""What executors call to own runs: claim, read, refresh, release. What they write is in checkpoints."""

from typing import Annotated, Literal, TypeAlias

from pydantic import Field, TypeAdapter

from aiki_push.domain.inbox import Message
from aiki_push.domain.log_records import LogSlot, Tail
from aiki_push.domain.run import Directive, RunOptions
from aiki_push.domain.run_states import Status
from aiki_push.domain.values import DurationMs, Identifier, Name, RunId, TimestampMs
from aiki_push.ports.api.endpoints import WorkflowVersionField
from aiki_push.ports.api.operation import Answer, Operation
from aiki_push.ports.api.runs import RunIdField

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
    a slot: the server puts them in front of the segment's first append. `messages` are the first of the inbox; where the last of them is
    not the `inbox_seq`th, GetInbox has the rest.
    `now` is the server's time; `claim_idle_timeout_ms` is how long the claim lives without a refresh.
    """

    claimed: Literal[True] = True
    run: ClaimedRun
    slots: tuple[LogSlot, ...]
    log_is_complete: bool
    tail: Tail
    messages: tuple[Message, ...]
    inbox_seq: int = 0
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
    """Messages in order, and where the run stands. `directive` is what its executor is to do with it at once.

    Where the last message is not the `inbox_seq`th, more follow: ask again after it.
    """

    messages: tuple[Message, ...]
    inbox_seq: int
    status: Status
    revision: int
    directive: Directive | None = None


class GetInbox(Operation[Inbox]):
    """Read the messages numbered above `after`, and the run's status, revision and directive. Raises NotFound."""

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
