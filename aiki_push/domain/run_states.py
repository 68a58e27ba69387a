"""The thirteen states of a run, each with the fields that only it has.

Outputs, errors and explanations are not here: they live in the log, in the record of the transition that brought them.
"""

from typing import Annotated, Literal, TypeAlias, get_args

from pydantic import Field

from aiki_push.domain.values import RunId, Stored, TimestampMs

QueuedReason = Literal[
    "new",
    "retry",
    "task_retry",
    "wakeup",
    "wakeup_early",
    "event",
    "event_wait_timeout",
    "child_workflow",
    "child_workflow_wait_timeout",
    "recovery",
    "yield",
    "released",
    "resumption",
    "redelivery",
]
StalledReason = Literal["undelivered", "diverged", "cannot_restore", "unknown_record", "corrupt_log", "crash_loop"]


class TaskCause(Stored):
    """The attempt ended because this task failed for good."""

    type: Literal["task"] = "task"
    task_id: str


class ChildWorkflowCause(Stored):
    """The attempt ended because this child did not complete."""

    type: Literal["child_workflow"] = "child_workflow"
    run_id: RunId


class SelfCause(Stored):
    """The attempt ended because the workflow's own code raised."""

    type: Literal["self"] = "self"


Cause = Annotated[TaskCause | ChildWorkflowCause | SelfCause, Field(discriminator="type")]


class Scheduled(Stored):
    """Waits for its time; nobody may claim it yet."""

    status: Literal["scheduled"] = "scheduled"
    reason: Literal["new"] = "new"
    scheduled_at: TimestampMs


class Queued(Stored):
    """Ready: whoever claims it first executes it. `reason` is what made it ready."""

    status: Literal["queued"] = "queued"
    reason: QueuedReason


class Running(Stored):
    """An executor holds the claim."""

    status: Literal["running"] = "running"


class Paused(Stored):
    """Stopped from outside until it is resumed."""

    status: Literal["paused"] = "paused"


class Sleeping(Stored):
    """Parked; the earliest deadline it waits for is a sleep or a timer."""

    status: Literal["sleeping"] = "sleeping"
    wakeup_at: TimestampMs


class AwaitingEvent(Stored):
    """Parked on an event, with or without a deadline."""

    status: Literal["awaiting_event"] = "awaiting_event"
    timeout_at: TimestampMs | None = None


class AwaitingChildWorkflow(Stored):
    """Parked on a child's end, with or without a deadline."""

    status: Literal["awaiting_child_workflow"] = "awaiting_child_workflow"
    timeout_at: TimestampMs | None = None


class AwaitingTaskRetry(Stored):
    """Parked until a failed task's next attempt; the workflow's attempts are untouched."""

    status: Literal["awaiting_task_retry"] = "awaiting_task_retry"
    next_attempt_at: TimestampMs


class AwaitingRetry(Stored):
    """The workflow attempt failed and backs off before the next one."""

    status: Literal["awaiting_retry"] = "awaiting_retry"
    cause: Cause
    next_attempt_at: TimestampMs


class Stalled(Stored):
    """Given up for now, with nothing lost: a requeue resumes it once the reason is mended."""

    status: Literal["stalled"] = "stalled"
    reason: StalledReason


class Completed(Stored):
    """Ended well. Terminal."""

    status: Literal["completed"] = "completed"


class Failed(Stored):
    """Ended by an error that is not retried. Terminal."""

    status: Literal["failed"] = "failed"
    cause: Cause


class Cancelled(Stored):
    """Ended from outside. Terminal."""

    status: Literal["cancelled"] = "cancelled"


RunState: TypeAlias = (
    Scheduled
    | Queued
    | Running
    | Paused
    | Sleeping
    | AwaitingEvent
    | AwaitingChildWorkflow
    | AwaitingTaskRetry
    | AwaitingRetry
    | Stalled
    | Completed
    | Failed
    | Cancelled
)
AnyState = Annotated[RunState, Field(discriminator="status")]

Status = Literal[
    "scheduled",
    "queued",
    "running",
    "paused",
    "sleeping",
    "awaiting_event",
    "awaiting_child_workflow",
    "awaiting_task_retry",
    "awaiting_retry",
    "stalled",
    "completed",
    "failed",
    "cancelled",
]
STATUSES: tuple[Status, ...] = get_args(Status)
TERMINAL: frozenset[Status] = frozenset({"completed", "failed", "cancelled"})
PARKED: frozenset[Status] = frozenset({"sleeping", "awaiting_event", "awaiting_child_workflow", "awaiting_task_retry"})
