"""Starting runs, reading them, waiting for their end, and requeueing the stalled."""

from typing import Annotated

from pydantic import Field, StringConstraints, TypeAdapter

from aiki_push.domain.log_records import RecordedError, StoredRecord
from aiki_push.domain.run import Offer, RunOptions
from aiki_push.domain.run_states import AnyState
from aiki_push.domain.values import (
    DEFAULT_PRIORITY,
    RUN_ID_PATTERN,
    DurationMs,
    Frozen,
    Identifier,
    Json,
    Name,
    Priority,
    RunId,
    StoredValue,
    TimestampMs,
)
from aiki_push.ports.api.operation import Answer, Operation

RunIdField = Annotated[RunId, StringConstraints(pattern=RUN_ID_PATTERN)]
Cursor = Annotated[str, StringConstraints(min_length=1, max_length=512, pattern=r"^[A-Za-z0-9_.-]+$")]


class StartOptions(Frozen):
    """What the new run keeps for life."""

    pool: Name | None = None
    priority: Priority = DEFAULT_PRIORITY


class ClaimView(Answer):
    """Who executes the run, and when it last said so."""

    executor: str
    claimed_at: TimestampMs
    refreshed_at: TimestampMs


class RunView(Answer):
    """A run as clients see it. `output` comes with `completed`; `error` with `failed`; `explanation` with `stalled` and `cancelled`."""

    id: RunId
    workflow: str
    version: str
    state: AnyState
    revision: int
    attempts: int
    options: RunOptions
    created_at: TimestampMs
    due_at: TimestampMs | None = None
    claim: ClaimView | None = None
    offer: Offer = Offer()
    output: StoredValue | None = None
    error: RecordedError | None = None
    explanation: str | None = None


class StartRun(Operation[RunView]):
    """Start a run. `run_id` is made by the client, so that a repeated request is the same start; the server makes one if absent.

    Leave `input` out for workflows that take none: no input and null are different inputs.
    Raises ReferenceConflict (`run_id` is in use for another start), PayloadTooLarge.
    """

    operation, method, path, role = "start_run", "POST", "/v1/runs", "client"
    answer = TypeAdapter[RunView](RunView)

    run_id: RunIdField | None = None
    workflow: Name
    version: Name
    input: Json = None
    options: StartOptions = StartOptions()


class GetRun(Operation[RunView]):
    """Read a run. Raises NotFound."""

    operation, method, path, role = "get_run", "GET", "/v1/runs/{run_id}", "client"
    answer = TypeAdapter[RunView](RunView)

    run_id: RunIdField


class WaitRun(Operation[RunView]):
    """Read a run as soon as it has ended, or after `timeout_ms` as it is then (the server may answer earlier: ask again).

    Raises NotFound.
    """

    operation, method, path, role = "wait_run", "GET", "/v1/runs/{run_id}/wait", "client"
    answer = TypeAdapter[RunView](RunView)

    run_id: RunIdField
    timeout_ms: Annotated[DurationMs, Field(ge=0, le=60_000)] = DurationMs(20_000)


class HistoryEntry(Answer):
    """A record and the slot it stands in."""

    position: int
    record: StoredRecord


class History(Answer):
    """Part of a run's history, oldest first. `next_cursor` is there while more follows."""

    entries: tuple[HistoryEntry, ...]
    next_cursor: str | None = None


class GetHistory(Operation[History]):
    """Read what a run did. Raises NotFound, InvalidRequest (a cursor that this server did not make)."""

    operation, method, path, role = "get_history", "GET", "/v1/runs/{run_id}/history", "client"
    answer = TypeAdapter[History](History)

    run_id: RunIdField
    cursor: Cursor | None = None


class RequeueRun(Operation[RunView]):
    """Put a stalled run back in its queue. A repeated `operation_id` is the same request.

    Raises NotFound, IllegalTransition (the run is not stalled).
    """

    operation, method, path, role = "requeue_run", "POST", "/v1/runs/{run_id}/requeue", "client"
    answer = TypeAdapter[RunView](RunView)

    run_id: RunIdField
    operation_id: Identifier


class PayloadContent(Answer):
    """A value that was too large for the log."""

    value: Json


class GetPayload(Operation[PayloadContent]):
    """Read a value that came as a reference. Raises NotFound."""

    operation, method, path, role = "get_payload", "GET", "/v1/runs/{run_id}/payloads/{sha256}", "executor"
    answer = TypeAdapter[PayloadContent](PayloadContent)

    run_id: RunIdField
    sha256: Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
