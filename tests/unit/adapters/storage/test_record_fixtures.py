"""What earlier releases stored is read by this one.

`tests/fixtures/records/<release>/` holds what that release wrote: records and states as JSON, items in DynamoDB's notation (`B`
in base64). Its files are never changed. A new type adds a file; a new format adds files beside the old ones.
"""

import json
from base64 import b64decode
from collections.abc import Mapping
from pathlib import Path
from typing import TypeAlias, get_args

import pytest
from pydantic import TypeAdapter

from aiki_push.adapters.storage.dynamodb.items import plain
from aiki_push.adapters.storage.formats import read
from aiki_push.adapters.storage.table import Item
from aiki_push.domain.endpoints import Endpoint, WorkflowVersionName
from aiki_push.domain.inbox import Message
from aiki_push.domain.log_records import (
    AnyRecord,
    InputRecord,
    KnownRecord,
    LogSlot,
    RecordedError,
    StoredRecord,
    Tail,
    TaskBackingOff,
    TaskCancelled,
    TaskCompleted,
    TaskFailed,
    TaskStarted,
    Transition,
    WaitEnded,
    WaitStarted,
)
from aiki_push.domain.retry import exponential
from aiki_push.domain.run import Claim, LastWrite, Offer, Run, RunOptions, RunReference
from aiki_push.domain.run_states import (
    STATUSES,
    AnyState,
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
from aiki_push.domain.waits import Wait
from aiki_push.ports.store import Found

FIXTURES = Path(__file__).parents[3] / "fixtures" / "records"
RUN = RunId("01JGFJJZ00000000000000000A")
CHILD = RunId("01JGFJJZ00000000000000000B")
HASH = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"
START = 1_767_225_600_000


def at(later: int = 0) -> TimestampMs:
    return TimestampMs(START + DurationMs(later))


Authored: TypeAlias = Mapping[str, AnyRecord | RunState | Found]

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

RECORDS: Mapping[str, KnownRecord] = {
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

SLOT = LogSlot(
    position=3,
    records=(RECORDS["record_task_completed"], RECORDS["record_task_started"]),
    revision=5,
    at=at(10),
    claim_id="claim-1",
    checkpoint_id="checkpoint-1",
)
HEADER = Run(
    etag="AAAAAAAAAAAAAAAB",
    namespace="default",
    id=RUN,
    workflow="orders",
    version="1.0.0",
    input_hash=HASH,
    options=RunOptions(pool="gpu", priority=3),
    created_at=at(),
    revision=6,
    state=AwaitingEvent(timeout_at=at(60_000)),
    attempts=2,
    tail=Tail(position=4, records=(RECORDS["record_task_cancelled"],)),
    claim=Claim(claim_id="claim-1", executor="worker-1", claimed_at=at(1), refreshed_at=at(2)),
    last_write=LastWrite(checkpoint_id="checkpoint-2", claim_id="claim-1"),
    inbox_seq=4,
    waits=(Wait(kind="event", key="approved", ordinal=0, deadline_at=at(60_000)), Wait(kind="child", key=CHILD, ordinal=1)),
    recoveries=1,
    advance_errors=2,
    offer=Offer(attempts=3, last_error="connection refused"),
    operations=("operation-1", "operation-2"),
    ready_at=at(20),
    due_at=at(60_000),
)
NEW_RUN = Run(
    etag="AAAAAAAAAAAAAAAC",
    namespace="default",
    id=RUN,
    workflow="orders",
    version="1.0.0",
    input_hash=HASH,
    options=RunOptions(),
    created_at=at(),
    revision=0,
    state=Queued(reason="new"),
    tail=Tail(position=0, records=(RECORDS["record_input"], RECORDS["record_transition"])),
    ready_at=at(),
    due_at=at(),
)
ITEMS: Mapping[str, Found] = {
    "header": NEW_RUN,
    "header_with_everything": HEADER,
    "header_with_reference": NEW_RUN.model_copy(
        update={
            "etag": "AAAAAAAAAAAAAAAD",
            "state": Scheduled(scheduled_at=at(60_000)),
            "reference": "order 17 / é",
            "options": RunOptions(retry=exponential(max_attempts=3, base_delay_ms=500, non_retryable=("Declined",))),
            "ready_at": None,
            "due_at": at(60_000),
        }
    ),
    "header_of_a_pulled_run": NEW_RUN.model_copy(
        update={
            "etag": "AAAAAAAAAAAAAAAE",
            "state": Running(),
            "revision": 1,
            "claim": Claim(claim_id="claim-2", executor="worker-1", claimed_at=at(1), refreshed_at=at(2), request_id="request-1"),
            "due_at": at(90_000),
        }
    ),
    "reference": RunReference(
        etag="AAAAAAAAAAAAAAAF", namespace="default", workflow="orders", version="1.0.0", reference="order 17 / é", run_id=RUN
    ),
    "slot": SLOT,
    "slot_compressed": SLOT.model_copy(update={"position": 4, "records": tuple(RECORDS.values())}),
    "slot_of_a_transition": LogSlot(position=0, records=(RECORDS["record_input"],), revision=0, at=at()),
    "message_event": Message(seq=1, at=at(11), kind="event", key="approved", data=Inline(value={"by": "é"})),
    "message_child": Message(seq=2, at=at(12), kind="child", key=CHILD),
    "message_wakeup": Message(seq=3, at=at(13), kind="wakeup", key="nap"),
    "endpoint": Endpoint(
        namespace="default",
        id="billing",
        url="https://example.com/aiki",
        workflows=(WorkflowVersionName(name="orders", version="1.0.0"),),
        created_at=at(),
        updated_at=at(),
    ),
    "endpoint_with_everything": Endpoint(
        namespace="default",
        id="billing",
        url="https://example.com/aiki",
        workflows=(WorkflowVersionName(name="orders", version="1.0.0"), WorkflowVersionName(name="refunds", version="2")),
        pools=("gpu", "eu"),
        audience="billing",
        secret="whsec_c2VjcmV0",
        created_at=at(),
        updated_at=at(14),
    ),
}

AUTHORED: Mapping[str, Authored] = {"0.1.0": {**STATES, **RECORDS, **ITEMS}}

_STATE: TypeAdapter[RunState] = TypeAdapter(AnyState)
_RECORD: TypeAdapter[AnyRecord] = TypeAdapter(StoredRecord)


def read_fixture(path: Path) -> AnyRecord | RunState | Found:
    if path.name.startswith("state_"):
        return _STATE.validate_json(path.read_bytes())
    if path.name.startswith("record_"):
        return _RECORD.validate_json(path.read_bytes())
    return read(read_item(path))


def read_item(path: Path) -> Item:
    attributes = json.loads(path.read_text(encoding="utf-8"))
    return plain({name: {"B": b64decode(value["B"])} if "B" in value else value for name, value in attributes.items()})


@pytest.mark.parametrize(
    ("release", "name"),
    [(release, name) for release, authored in AUTHORED.items() for name in authored],
    ids=str,
)
def test_what_a_release_stored_is_read_as_it_was_authored(release: str, name: str) -> None:
    assert read_fixture(FIXTURES / release / f"{name}.json") == AUTHORED[release][name]


def test_every_file_has_its_model() -> None:
    files = {release.name: {path.stem for path in release.glob("*.json")} for release in FIXTURES.iterdir()}
    assert files == {release: set(authored) for release, authored in AUTHORED.items()}


def test_every_type_of_record_and_every_state_has_a_file() -> None:
    assert {type(record) for record in RECORDS.values()} == set(get_args(KnownRecord))
    assert {state.status for state in STATES.values()} == set(STATUSES)


def test_one_of_the_files_is_compressed() -> None:
    assert isinstance(read_item(FIXTURES / "0.1.0" / "slot_compressed.json")["d"], bytes)
