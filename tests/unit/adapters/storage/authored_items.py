"""Items of the table, one for each other file of the fixtures, as they were authored."""

from collections.abc import Mapping

from aiki_push.domain.endpoints import Endpoint, WorkflowVersionName
from aiki_push.domain.inbox import Message, RunEnding, Watcher
from aiki_push.domain.log_records import LogSlot, Tail
from aiki_push.domain.retry import exponential
from aiki_push.domain.run import Claim, Directive, LastWrite, Offer, Run, RunOptions, RunReference
from aiki_push.domain.run_states import (
    AwaitingChildWorkflow,
    AwaitingEvent,
    Cancelled,
    Completed,
    Failed,
    Paused,
    Queued,
    Running,
    Scheduled,
    TaskCause,
)
from aiki_push.domain.values import Inline
from aiki_push.domain.waits import Wait
from aiki_push.ports.store import Found, SentEvent
from tests.unit.adapters.storage.authored_records import CHILD, ERROR, FIRST_RECORDS, HASH, RECORDS, RUN, at

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
PAUSED_CHILD = HEADER.model_copy(
    update={
        "etag": "AAAAAAAAAAAAAAAG",
        "parent": CHILD,
        "state": Paused(),
        "paused_from": AwaitingChildWorkflow(timeout_at=at(60_000)),
        "seen_seq": 3,
        "open_child_waits": 1,
        "watched": True,
        "due_at": None,
    }
)
DIRECTED_RUN = NEW_RUN.model_copy(
    update={
        "etag": "AAAAAAAAAAAAAAAH",
        "state": Running(),
        "revision": 1,
        "claim": Claim(claim_id="claim-2", executor="worker-1", claimed_at=at(1), refreshed_at=at(2)),
        "directive": Directive(action="cancel", operation_id="operation-3", explanation="no longer wanted: é"),
        "ready_at": None,
        "due_at": at(90_000),
    }
)
CANCELLED_RUN = NEW_RUN.model_copy(
    update={
        "etag": "AAAAAAAAAAAAAAAI",
        "state": Cancelled(),
        "revision": 1,
        "watched": True,
        "duties": ("tell_watchers", "cancel_children"),
        "ready_at": None,
        "due_at": at(17),
    }
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
    "header_of_a_paused_child": PAUSED_CHILD,
    "header_of_a_run_with_a_directive": DIRECTED_RUN,
    "header_of_a_run_with_duties": CANCELLED_RUN,
    "reference": RunReference(
        etag="AAAAAAAAAAAAAAAF", namespace="default", workflow="orders", version="1.0.0", reference="order 17 / é", run_id=RUN
    ),
    "slot": SLOT,
    "slot_compressed": SLOT.model_copy(update={"position": 4, "records": tuple(FIRST_RECORDS.values())}),
    "slot_of_a_transition": LogSlot(position=0, records=(RECORDS["record_input"],), revision=0, at=at()),
    "message_event": Message(seq=1, at=at(11), kind="event", key="approved", data=Inline(value={"by": "é"})),
    "message_child": Message(seq=2, at=at(12), kind="child", key=CHILD),
    "message_wakeup": Message(seq=3, at=at(13), kind="wakeup", key="nap"),
    "message_child_completed": Message(
        seq=4, at=at(18), kind="child", key=CHILD, ending=RunEnding(state=Completed(), output=Inline(value={"refunded": 17}))
    ),
    "message_child_failed": Message(
        seq=5,
        at=at(18),
        kind="child",
        key=CHILD,
        ending=RunEnding(state=Failed(cause=TaskCause(task_id="f00d")), error=ERROR),
    ),
    "message_child_cancelled": Message(
        seq=6, at=at(18), kind="child", key=CHILD, ending=RunEnding(state=Cancelled(), explanation="no longer wanted: é")
    ),
    "watcher": Watcher(etag="AAAAAAAAAAAAAAAJ", run_id=CHILD),
    "event_reference": SentEvent("approved", "webhook 17 / é"),
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
