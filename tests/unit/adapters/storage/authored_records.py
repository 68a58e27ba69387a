"""States and records, one for each file `state_*` and `record_*` of the fixtures, as they were authored."""

from collections.abc import Mapping

from aiki_push.domain.log_records import (
    CallEnded,
    CallError,
    InputRecord,
    KnownRecord,
    Received,
    RecordedError,
    TaskBackingOff,
    TaskCancelled,
    TaskCompleted,
    TaskFailed,
    TaskStarted,
    Transition,
    WaitEnded,
    WaitStarted,
)
from aiki_push.domain.run_states import (
    AwaitingChildWorkflow,
    AwaitingEvent,
    AwaitingRetry,
    AwaitingTaskRetry,
    Cancelled,
    ChildWorkflowCause,
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
    TaskCause,
)
from aiki_push.domain.values import DurationMs, Inline, PayloadReference, RunId, TimestampMs

RUN = RunId("01JGFJJZ00000000000000000A")
CHILD = RunId("01JGFJJZ00000000000000000B")
HASH = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"
START = 1_767_225_600_000


def at(later: int = 0) -> TimestampMs:
    return TimestampMs(START + DurationMs(later))


STATES: Mapping[str, RunState] = {
    "state_scheduled": Scheduled(scheduled_at=at(60_000)),
    "state_queued": Queued(reason="new"),
    "state_running": Running(),
    "state_paused": Paused(),
    "state_sleeping": Sleeping(wakeup_at=at(60_000)),
    "state_awaiting_event": AwaitingEvent(timeout_at=at(60_000)),
    "state_awaiting_event_for_ever": AwaitingEvent(),
    "state_awaiting_child_workflow": AwaitingChildWorkflow(timeout_at=at(60_000)),
    "state_awaiting_child_workflow_for_ever": AwaitingChildWorkflow(),
    "state_awaiting_task_retry": AwaitingTaskRetry(next_attempt_at=at(60_000)),
    "state_awaiting_retry": AwaitingRetry(cause=TaskCause(task_id="f00d"), next_attempt_at=at(60_000)),
    "state_stalled": Stalled(reason="unknown_record"),
    "state_completed": Completed(),
    "state_failed": Failed(cause=ChildWorkflowCause(run_id=CHILD)),
    "state_failed_by_itself": Failed(cause=SelfCause()),
    "state_cancelled": Cancelled(),
}

ERROR = RecordedError(
    name="OrderError",
    message="no such order: é",
    stack="Traceback\n  …",
    cause=RecordedError(name="KeyError", message="17"),
)

FIRST_RECORDS: Mapping[str, KnownRecord] = {
    "record_input": InputRecord(at=at(), value=Inline(value={"order": 17, "note": None, "prices": [1.5, -2]}), hash=HASH),
    "record_input_of_null": InputRecord(at=at(), value=Inline(value=None), hash=HASH),
    "record_input_of_nothing": InputRecord(at=at(), value=None, hash=HASH),
    "record_input_in_payload_store": InputRecord(
        at=at(), value=PayloadReference(run_id=RUN, sha256=HASH, size=70_000), hash=HASH
    ),
    "record_transition": Transition(at=at(1), state=Queued(reason="new"), revision=0, attempts=1),
    "record_transition_with_everything": Transition(
        at=at(2),
        origin="running",
        state=Failed(cause=SelfCause()),
        revision=7,
        attempts=2,
        executor="worker-1",
        output=Inline(value=[]),
        error=ERROR,
        explanation="asked for by the owner",
    ),
    "record_task_started": TaskStarted(
        at=at(3), task_id="f00d", name="charge", input_hash=HASH, ordinal=0, attempt=1, input=Inline(value={"cents": 1299})
    ),
    "record_task_started_without_input": TaskStarted(
        at=at(3), task_id="f00d", name="charge", input_hash=HASH, ordinal=1, attempt=2
    ),
    "record_task_completed": TaskCompleted(at=at(4), task_id="f00d", attempt=1, output=Inline(value={"charged": True})),
    "record_task_completed_with_null": TaskCompleted(at=at(4), task_id="f00d", attempt=1, output=Inline(value=None)),
    "record_task_failed": TaskFailed(at=at(5), task_id="f00d", attempt=3, error=ERROR),
    "record_task_backing_off": TaskBackingOff(at=at(6), task_id="f00d", attempt=1, error=ERROR, next_attempt_at=at(7_000)),
    "record_task_cancelled": TaskCancelled(at=at(7), task_id="f00d"),
    "record_wait_started": WaitStarted(at=at(8), kind="event", key="approved", ordinal=0, deadline_at=at(60_000)),
    "record_wait_started_for_ever": WaitStarted(at=at(8), kind="child", key=CHILD, ordinal=0),
    "record_wait_ended": WaitEnded(at=at(9), kind="sleep", key="nap", ordinal=2),
}
"""All that there were when `slot_compressed` was written."""

RECORDS: Mapping[str, KnownRecord] = {
    **FIRST_RECORDS,
    "record_received": Received(at=at(15), seq=1, kind="event", key="approved", ordinal=0),
    "record_received_from_a_child": Received(at=at(15), seq=2, kind="child", key=CHILD, ordinal=1),
    "record_received_by_a_sleep": Received(at=at(15), seq=3, kind="sleep", key="nap", ordinal=2),
    "record_call_ended": CallEnded(
        at=at(16), kind="child", key="c0ffee", ordinal=0, run_id=CHILD, name="refunds 2", result="created"
    ),
    "record_call_ended_of_an_event": CallEnded(
        at=at(16), kind="send_event", key="c0ffee", ordinal=1, run_id=CHILD, name="approved", result="not_delivered"
    ),
    "record_call_ended_with_an_error": CallEnded(
        at=at(16),
        kind="pause",
        key="c0ffee",
        ordinal=2,
        run_id=CHILD,
        error=CallError(code="illegal_transition", detail="the run has ended: é"),
    ),
}
