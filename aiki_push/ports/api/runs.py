"""Starting runs, reading and listing them, and waiting for their end."""

from typing import Annotated

from pydantic import Field, StringConstraints, TypeAdapter

from aiki_push.domain.durations import MAX_DURATION_MS
from aiki_push.domain.log_records import RecordedError, StoredRecord
from aiki_push.domain.retry import RetryStrategy
from aiki_push.domain.run import Directive, Offer, ReferenceId, RunOptions
from aiki_push.domain.run_states import AnyState, Status
from aiki_push.domain.starts import ConflictPolicy
from aiki_push.domain.values import (
    DEFAULT_PRIORITY,
    RUN_ID_PATTERN,
    DurationMs,
    Frozen,
    Json,
    Name,
    Priority,
    RunId,
    StoredValue,
    TimestampMs,
)
from aiki_push.domain.waits import Wait
from aiki_push.ports.api.operation import Answer, Operation

RunIdField = Annotated[RunId, StringConstraints(pattern=RUN_ID_PATTERN)]
MAX_EXPLANATION_LENGTH = 1_024
Explanation = Annotated[str, StringConstraints(min_length=1, max_length=MAX_EXPLANATION_LENGTH)]
SleepName = Name
Cursor = Annotated[str, StringConstraints(min_length=1, max_length=512, pattern=r"^[A-Za-z0-9_.-]+$")]


class StartOptions(Frozen):
    """How the new run is executed: what it keeps for life, and for how long it is held back first.

    `delay_ms` counts from the run's creation, by the server's clock; 10 years at most.
    """

    pool: Name | None = None
    priority: Priority = DEFAULT_PRIORITY
    retry: RetryStrategy | None = None
    delay_ms: Annotated[DurationMs, Field(gt=0, le=MAX_DURATION_MS, strict=True)] | None = None


class StartReference(Frozen):
    """Which particular run of the workflow version this is, and what to do where another input was given for it before."""

    id: ReferenceId
    conflict_policy: ConflictPolicy = "error"


class ClaimView(Answer):
    """Who executes the run, and when it last said so."""

    executor: str
    claimed_at: TimestampMs
    refreshed_at: TimestampMs


class RunSummary(Answer):
    """Where a run is, without what it brought. `waits` is what a parked run waits for; many are shown as one a kind, with the key `*`."""

    id: RunId
    workflow: str
    version: str
    state: AnyState
    revision: int
    attempts: int
    options: RunOptions
    reference: str | None = None
    created_at: TimestampMs
    due_at: TimestampMs | None = None
    claim: ClaimView | None = None
    offer: Offer = Offer()
    waits: tuple[Wait, ...] = ()
    directive: Directive | None = None


class RunView(RunSummary):
    """A run as clients see it. `output` comes with `completed`; `error` with `failed`; `explanation` with `stalled` and `cancelled`."""

    output: StoredValue | None = None
    error: RecordedError | None = None
    explanation: str | None = None


class StartRun(Operation[RunView]):
    """Start a run. `run_id` is made by the client, so that a repeated request is the same start; the server makes one if absent.

    Leave `input` out for workflows that take none: no input and null are different inputs. With a `reference` that a run of this
    workflow version has already, and the same input, that run is answered, whatever its state and options.
    Raises ReferenceConflict (`run_id` is in use for another start; the reference for another input), PayloadTooLarge.
    """

    operation, method, path, role = "start_run", "POST", "/v1/runs", "client"
    answer = TypeAdapter[RunView](RunView)

    run_id: RunIdField | None = None
    workflow: Name
    version: Name
    input: Json = None
    options: StartOptions = StartOptions()
    reference: StartReference | None = None


class RunList(Answer):
    """Part of a list of runs, newest first. `next_cursor` is there while more may follow, even where `runs` is short or empty."""

    runs: tuple[RunSummary, ...]
    next_cursor: str | None = None


class ListRuns(Operation[RunList]):
    """Read the runs of a workflow, of a version, in a status, with a reference, or all of them.

    A page ends at `limit` runs, or sooner where many others had to be looked at. `reference` needs `workflow` and `version`.
    Raises InvalidRequest (also for a cursor that this server did not make for these filters).
    """

    operation, method, path, role = "list_runs", "GET", "/v1/runs", "client"
    answer = TypeAdapter[RunList](RunList)

    workflow: Name | None = None
    version: Name | None = None
    status: Status | None = None
    reference: ReferenceId | None = None
    limit: Annotated[int, Field(ge=1, le=100)] = 50
    cursor: Cursor | None = None


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


class PayloadContent(Answer):
    """A value that was too large for the log."""

    value: Json


class GetPayload(Operation[PayloadContent]):
    """Read a value that came as a reference. Raises NotFound."""

    operation, method, path, role = "get_payload", "GET", "/v1/runs/{run_id}/payloads/{sha256}", "executor"
    answer = TypeAdapter[PayloadContent](PayloadContent)

    run_id: RunIdField
    sha256: Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
