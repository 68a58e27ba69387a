"""States, runs and records to test with."""

import json

from aiki_push.domain.changes import Change, SaveRun
from aiki_push.domain.log_records import AnyRecord, RecordedError, Tail, WaitStarted
from aiki_push.domain.run import Claim, Run, RunOptions
from aiki_push.domain.run_states import (
    AwaitingChildWorkflow,
    AwaitingEvent,
    AwaitingRetry,
    AwaitingTaskRetry,
    Cancelled,
    Completed,
    Failed,
    Paused,
    Queued,
    Running,
    RunState,
    Scheduled,
    SelfCause,
    Sleeping,
    Stalled,
    Status,
    TaskCause,
)
from aiki_push.domain.values import RunId, TimestampMs

NAMESPACE = "shop"
RUN_ID = RunId("01J8ZQ4T9VX6E4Y2M3N5P7R8SA")
INPUT_HASH = "5f" * 32
CREATED_AT = TimestampMs(1_800_000_000_000)
BOOM = RecordedError(name="ValueError", message="the shelf is empty")


def later(ms: int) -> TimestampMs:
    """So long after the run was created."""
    return TimestampMs(CREATED_AT + ms)


EXAMPLES: dict[Status, RunState] = {
    "scheduled": Scheduled(scheduled_at=later(500)),
    "queued": Queued(reason="new"),
    "running": Running(),
    "paused": Paused(),
    "sleeping": Sleeping(wakeup_at=later(500)),
    "awaiting_event": AwaitingEvent(timeout_at=later(500)),
    "awaiting_child_workflow": AwaitingChildWorkflow(timeout_at=later(500)),
    "awaiting_task_retry": AwaitingTaskRetry(next_attempt_at=later(500)),
    "awaiting_retry": AwaitingRetry(cause=TaskCause(task_id="task-1"), next_attempt_at=later(500)),
    "stalled": Stalled(reason="diverged"),
    "completed": Completed(),
    "failed": Failed(cause=SelfCause()),
    "cancelled": Cancelled(),
}


def note(text: str, at: TimestampMs = CREATED_AT) -> WaitStarted:
    """A record that is told from others by its text."""
    return WaitStarted(at=at, kind="event", key=text, ordinal=0)


def json_bytes(records: tuple[AnyRecord, ...], position: int) -> int:
    """The size of a tail as compact JSON without nulls, in bytes of UTF-8."""
    tail = Tail(position=position, records=records).model_dump(mode="json", exclude_none=True)
    return len(json.dumps(tail, ensure_ascii=False, separators=(",", ":")).encode())


EARLIER = (note("earlier-1"), note("earlier-2"))
"""What the tail of the runs below holds."""


def run_in(state: RunState, **fields: object) -> Run:
    """A run in `state` at revision 5 whose tail is `EARLIER` at position 3, with `fields` of its header set."""
    unknown = fields.keys() - Run.model_fields.keys()
    assert not unknown, f"a run has no {unknown}"
    run = Run(
        etag="e-1",
        namespace=NAMESPACE,
        id=RUN_ID,
        workflow="order",
        version="v1",
        input_hash=INPUT_HASH,
        options=RunOptions(pool="large", priority=2),
        created_at=CREATED_AT,
        revision=5,
        state=state,
        tail=Tail(position=3, records=EARLIER),
    )
    return run.model_copy(update=fields)


def queued_run(**fields: object) -> Run:
    """A run that is ready and due since 1 000 ms after its creation."""
    return run_in(Queued(reason="new"), **{"ready_at": later(1_000), "due_at": later(1_000), **fields})


CLAIM = Claim(claim_id="claim-a", executor="worker-a", claimed_at=later(2_000), refreshed_at=later(3_000))


def running_run(**fields: object) -> Run:
    """A run owned under `CLAIM`, taken at revision 5."""
    return run_in(Running(), **{"claim": CLAIM, "due_at": later(93_000), **fields})


def saved(*changes: Change) -> Run:
    """The header that `changes` write, which is all they do."""
    (save,) = changes
    assert isinstance(save, SaveRun)
    return save.run
