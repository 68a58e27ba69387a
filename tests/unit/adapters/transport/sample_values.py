"""Runs, records and messages that the samples are made of."""

from aiki_push.domain.endpoints import WorkflowVersionName
from aiki_push.domain.inbox import Message, RunEnding
from aiki_push.domain.log_records import (
    CallEnded,
    CallError,
    InputRecord,
    LogSlot,
    Received,
    RecordedError,
    Tail,
    TaskCompleted,
    TaskFailed,
    TaskStarted,
    Transition,
    UnknownRecord,
    WaitStarted,
)
from aiki_push.domain.run import Directive, RunOptions
from aiki_push.domain.run_states import Completed, Failed, Running, TaskCause
from aiki_push.domain.values import DurationMs, Inline, PayloadReference, RunId, TimestampMs
from aiki_push.domain.waits import Wait
from aiki_push.ports.api.claims import Claimed, ClaimedRun
from aiki_push.ports.api.endpoints import EndpointView
from aiki_push.ports.api.runs import ClaimView, RunSummary, RunView

RUN_ID = RunId("01ARZ3NDEKTSV4RRFFQ69G5FAV")
OTHER_RUN_ID = RunId("01ARZ3NDEKTSV4RRFFQ69G5FAW")
AT = TimestampMs(1_767_225_600_000)

AWKWARD = {
    "text": 'naïve "🧾" \u2028 </script>',
    "float": 1.0,
    "tiny": 5e-324,
    "big": 2**53,
    "none": None,
    "nest": [[], {}, [True]],
}
"""Values that a careless encoding changes."""

REFERENCE = PayloadReference(run_id=RUN_ID, sha256="a" * 64, size=40_000)
ERROR = RecordedError(name="Refused", message="card", stack="Traceback", cause=RecordedError(name="Inner", message=""))
MESSAGES = (
    Message(seq=1, at=AT, kind="event", key="paid", data=Inline(value=None)),
    Message(seq=2, at=AT, kind="event", key="paid"),
    Message(seq=3, at=AT, kind="wakeup", key="*"),
    Message(seq=4, at=AT, kind="child", key=OTHER_RUN_ID, ending=RunEnding(state=Completed(), output=REFERENCE)),
    Message(
        seq=5, at=AT, kind="child", key=OTHER_RUN_ID, ending=RunEnding(state=Failed(cause=TaskCause(task_id="t2")), error=ERROR)
    ),
)
CHILD_STARTED = CallEnded(
    at=AT, kind="child", key="child|order", ordinal=0, run_id=OTHER_RUN_ID, name="order 1.0.0", result="created"
)
EVENT_REFUSED = CallEnded(
    at=AT,
    kind="send_event",
    key="send_event|paid",
    ordinal=1,
    run_id=OTHER_RUN_ID,
    name="paid",
    error=CallError(code="not_found", detail="no run has this id"),
)
DIRECTIVE = Directive(action="cancel", operation_id="op-1", explanation='ordered twice "🧾"')

RECORDS = (
    InputRecord(at=AT, value=Inline(value=AWKWARD), hash="f" * 64),
    Transition(at=AT, origin="queued", state=Running(), revision=1, attempts=1, executor="worker-1"),
    TaskStarted(at=AT, task_id="t1", name="charge", input_hash="f" * 64, ordinal=0, attempt=1),
    TaskCompleted(at=AT, task_id="t1", attempt=1, output=Inline(value=None)),
    TaskFailed(at=AT, task_id="t2", attempt=3, error=ERROR),
    WaitStarted(at=AT, kind="event", key="paid", ordinal=0),
    Received(at=AT, seq=1, kind="event", key="paid", ordinal=0),
    CHILD_STARTED,
    EVENT_REFUSED,
    UnknownRecord(type="from_the_future", at=AT),
)
SLOT = LogSlot(position=0, records=RECORDS, revision=1, at=AT, claim_id="c1", checkpoint_id="k1")

RUN = RunView(
    id=RUN_ID,
    workflow="order",
    version="1.0.0",
    state=Completed(),
    revision=7,
    attempts=2,
    options=RunOptions(pool="eu", priority=0),
    created_at=AT,
    claim=ClaimView(executor="worker-1", claimed_at=AT, refreshed_at=AT),
    output=REFERENCE,
)
SUMMARY = RunSummary(
    id=RUN_ID,
    workflow="order",
    version="1.0.0",
    state=Running(),
    revision=7,
    attempts=2,
    options=RunOptions(pool="eu", priority=0),
    reference="order 7",
    created_at=AT,
    due_at=AT,
    waits=(Wait(kind="event", key="paid", ordinal=0), Wait(kind="sleep", key="*", ordinal=0, deadline_at=AT)),
    claim=ClaimView(executor="worker-1", claimed_at=AT, refreshed_at=AT),
    directive=DIRECTIVE,
)
CLAIMED = Claimed(
    run=ClaimedRun(id=RUN_ID, workflow="order", version="1.0.0", revision=1, attempts=1, options=RunOptions(), created_at=AT),
    slots=(SLOT,),
    log_is_complete=False,
    tail=Tail(position=1, records=RECORDS[:2]),
    messages=MESSAGES,
    inbox_seq=6,
    position=1,
    token="token-1",
    now=AT,
    claim_idle_timeout_ms=DurationMs(90_000),
)
ENDPOINT = EndpointView(
    id="orders",
    url="https://example.com/push",
    workflows=(WorkflowVersionName(name="order", version="1.0.0"),),
    pools=("eu",),
    signature="v1a",
    created_at=AT,
    updated_at=AT,
)
