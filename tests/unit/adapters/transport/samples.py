"""An operation and its answer, for every operation of the catalogue and every kind of answer."""

from collections.abc import Mapping
from typing import Any

from aiki_push.domain.retry import exponential, never
from aiki_push.domain.run import RunOptions
from aiki_push.domain.run_states import (
    AwaitingRetry,
    Cancelled,
    Completed,
    Failed,
    Paused,
    Queued,
    Running,
    Scheduled,
    SelfCause,
    Stalled,
    TaskCause,
)
from aiki_push.domain.values import DurationMs, Inline
from aiki_push.domain.waits import Wait
from aiki_push.ports.api.calls import ControlRun, SendEventTo, StartChild
from aiki_push.ports.api.checkpoints import (
    AppendCheckpoint,
    Appended,
    Complete,
    Ended,
    Fail,
    HandBack,
    InboxMoved,
    Overtaken,
    Park,
    Retry,
    Stall,
    Yield,
)
from aiki_push.ports.api.claims import (
    ClaimedRuns,
    ClaimRun,
    ClaimRuns,
    GetInbox,
    GetLog,
    Inbox,
    LogAnswer,
    NotClaimed,
    RefreshClaim,
    Refreshed,
    ReleaseClaim,
    Released,
)
from aiki_push.ports.api.controls import CancelRun, PauseRun, RequeueRun, ResumeRun, WakeUpRun
from aiki_push.ports.api.endpoints import (
    DeleteEndpoint,
    EndpointDeleted,
    EndpointList,
    GetEndpoint,
    ListEndpoints,
    PutEndpoint,
    WorkflowVersionField,
)
from aiki_push.ports.api.events import (
    EventSent,
    EventsSent,
    MulticastEvent,
    RunWithId,
    RunWithReference,
    SendEvent,
    SendOutcome,
)
from aiki_push.ports.api.health import GetHealth, Health
from aiki_push.ports.api.operation import Operation
from aiki_push.ports.api.runs import (
    GetHistory,
    GetPayload,
    GetRun,
    History,
    HistoryEntry,
    ListRuns,
    PayloadContent,
    RunList,
    RunView,
    StartOptions,
    StartReference,
    StartRun,
    WaitRun,
)
from aiki_push.ports.api.signing_keys import ListSigningKeys, SigningKeyList
from tests.unit.adapters.transport.sample_values import (
    AT,
    AWKWARD,
    CHILD_STARTED,
    CLAIMED,
    DIRECTIVE,
    ENDPOINT,
    ERROR,
    EVENT_REFUSED,
    MESSAGES,
    OTHER_RUN_ID,
    RECORDS,
    RUN,
    RUN_ID,
    SLOT,
    SUMMARY,
)

Sample = tuple[Operation[Any], Any]


def _checkpoint(answer: object, **fields: Any) -> Sample:
    return AppendCheckpoint(run_id=RUN_ID, token="token-1", checkpoint_id="k1", position=3, **fields), answer


def _run(state: Any, **fields: Any) -> RunView:
    return RunView.model_validate({**dict(RUN), "state": state, "output": None, **fields})


SAMPLES: Mapping[str, Sample] = {
    "start_run without input": (StartRun(workflow="order", version="1.0.0"), _run(Queued(reason="new"), claim=None, due_at=AT)),
    "start_run with null": (StartRun(workflow="order", version="1.0.0", input=None), RUN),
    "start_run with everything": (
        StartRun(run_id=RUN_ID, workflow="order", version="1", input=AWKWARD, options=StartOptions(pool="eu", priority=9)),
        RUN,
    ),
    "start_run with options for one run": (
        StartRun(
            workflow="order",
            version="1.0.0",
            options=StartOptions(
                retry=exponential(max_attempts=3, base_delay_ms=500, factor=1.5, non_retryable=("Declined",)),
                delay_ms=DurationMs(30_000),
            ),
            reference=StartReference(id="order 7 / é 🧾", conflict_policy="return_existing"),
        ),
        _run(Scheduled(scheduled_at=AT), claim=None, reference="order 7 / é 🧾", options=RunOptions(retry=never())),
    ),
    "list_runs": (ListRuns(), RunList(runs=(SUMMARY, SUMMARY), next_cursor="e.f")),
    "list_runs by everything": (
        ListRuns(workflow="order", version="1.0.0", status="completed", reference="a&b=c #1 é", limit=100, cursor="a.b-c_d"),
        RunList(runs=()),
    ),
    "get_run": (GetRun(run_id=RUN_ID), _run(Failed(cause=TaskCause(task_id="t2")), error=ERROR)),
    "get_run that is tried again": (GetRun(run_id=RUN_ID), _run(AwaitingRetry(cause=SelfCause(), next_attempt_at=AT), due_at=AT)),
    "wait_run": (WaitRun(run_id=RUN_ID, timeout_ms=DurationMs(1)), _run(Stalled(reason="diverged"), explanation="insert")),
    "wait_run by default": (WaitRun(run_id=RUN_ID), _run(Completed(), output=Inline(value=1.0))),
    "get_history": (
        GetHistory(run_id=RUN_ID, cursor="a.b-c_d"),
        History(entries=tuple(HistoryEntry(position=0, record=record) for record in RECORDS), next_cursor="e"),
    ),
    "get_history from the start": (GetHistory(run_id=RUN_ID), History(entries=())),
    "pause_run": (PauseRun(run_id=RUN_ID, operation_id="op-1"), _run(Paused(), claim=None)),
    "resume_run": (ResumeRun(run_id=RUN_ID, operation_id="op-1"), _run(Queued(reason="resumption"), claim=None, due_at=AT)),
    "cancel_run": (CancelRun(run_id=RUN_ID, operation_id="op-1"), _run(Cancelled(), claim=None)),
    "cancel_run of a busy run": (
        CancelRun(run_id=RUN_ID, operation_id="op-1", explanation='ordered twice "🧾"'),
        _run(Running(), directive=DIRECTIVE),
    ),
    "wake_up_run": (WakeUpRun(run_id=RUN_ID, operation_id="op-1"), _run(Queued(reason="wakeup_early"), claim=None)),
    "wake_up_run from one sleep": (WakeUpRun(run_id=RUN_ID, operation_id="op-1", sleep="pause:1"), _run(Running())),
    "requeue_run": (RequeueRun(run_id=RUN_ID, operation_id="op-1"), RUN),
    "send_event without data": (SendEvent(run_id=RUN_ID, event="paid"), EventSent(delivered=True)),
    "send_event with null": (SendEvent(run_id=RUN_ID, event="paid", data=None), EventSent(delivered=False)),
    "send_event with everything": (
        SendEvent(run_id=RUN_ID, event="paid:1", data=AWKWARD, reference="payment 7 / é 🧾"),
        EventSent(delivered=True),
    ),
    "multicast_event": (
        MulticastEvent(event="paid", targets=(RunWithId(run_id=RUN_ID),)),
        EventsSent(outcomes=(SendOutcome(run_id=RUN_ID, delivered=True),)),
    ),
    "multicast_event with everything": (
        MulticastEvent(
            event="paid:1",
            targets=(RunWithReference(workflow="order", version="1.0.0", reference="order 7 / é 🧾"), RunWithId(run_id=RUN_ID)),
            data=AWKWARD,
            reference="payment 7 / é 🧾",
        ),
        EventsSent(outcomes=(SendOutcome(run_id=None, delivered=False), SendOutcome(run_id=RUN_ID, delivered=False))),
    ),
    "claim_run": (ClaimRun(run_id=RUN_ID, claim_id="c1", executor="wörker 1", revision=0), CLAIMED),
    "claim_run in vain": (ClaimRun(run_id=RUN_ID, claim_id="c1", executor="worker-1"), NotClaimed(reason="not_queued")),
    "claim_runs": (
        ClaimRuns(
            request_id="r1",
            executor="wörker 1",
            workflows=(WorkflowVersionField(name="order", version="1.0.0"),),
            pools=("eu",),
            limit=100,
        ),
        ClaimedRuns(claims=(CLAIMED, CLAIMED), claim_idle_timeout_ms=DurationMs(90_000)),
    ),
    "claim_runs of none": (
        ClaimRuns(request_id="r1", executor="worker-1", workflows=(WorkflowVersionField(name="order", version="1.0.0"),)),
        ClaimedRuns(claims=(), claim_idle_timeout_ms=DurationMs(90_000)),
    ),
    "get_log": (GetLog(run_id=RUN_ID), LogAnswer(slots=(SLOT, SLOT), is_last=True)),
    "get_log after the first": (GetLog(run_id=RUN_ID, after=0), LogAnswer(slots=(), is_last=False)),
    "get_inbox": (GetInbox(run_id=RUN_ID), Inbox(messages=MESSAGES, inbox_seq=5, status="sleeping", revision=2)),
    "get_inbox with a directive": (
        GetInbox(run_id=RUN_ID, after=3),
        Inbox(messages=(), inbox_seq=3, status="running", revision=2, directive=DIRECTIVE),
    ),
    "get_payload": (GetPayload(run_id=RUN_ID, sha256="0" * 64), PayloadContent(value=AWKWARD)),
    "get_payload of null": (GetPayload(run_id=RUN_ID, sha256="0" * 64), PayloadContent(value=None)),
    "refresh_claim": (
        RefreshClaim(run_id=RUN_ID, token="token-1"),
        Refreshed(refreshed_at=AT, claim_idle_timeout_ms=DurationMs(90_000)),
    ),
    "release_claim": (ReleaseClaim(run_id=RUN_ID, token="token-1"), Released(revision=3)),
    "append_checkpoint": _checkpoint(Appended(position=4, token="token-2"), records=RECORDS[2:7]),
    "append_checkpoint with calls": _checkpoint(
        Appended(position=4, token="token-2", ended=(CHILD_STARTED, EVENT_REFUSED)),
        records=(),
        calls=(
            StartChild(key="child|order", ordinal=0, run_id=OTHER_RUN_ID, workflow="order", version="1.0.0"),
            StartChild(
                key="child|order",
                ordinal=1,
                run_id=RUN_ID,
                workflow="order",
                version="1.0.0",
                input=AWKWARD,
                options=StartOptions(pool="eu", retry=never()),
                reference=StartReference(id="order 7 / é 🧾"),
            ),
            SendEventTo(key="event", ordinal=0, run_id=OTHER_RUN_ID, event="paid", reference="r"),
            SendEventTo(key="event", ordinal=1, run_id=OTHER_RUN_ID, event="paid", data=None, reference="r"),
            ControlRun(kind="cancel", key="cancel", ordinal=0, run_id=OTHER_RUN_ID, operation_id="op-1", explanation="late"),
            ControlRun(kind="wakeup", key="wakeup", ordinal=0, run_id=OTHER_RUN_ID, operation_id="op-2", sleep="pause"),
        ),
    ),
    "append_checkpoint that completes": _checkpoint(
        Ended(status="completed", revision=3), records=(), end=Complete(output=Inline(value=None))
    ),
    "append_checkpoint that fails": _checkpoint(
        Ended(status="failed", revision=3), records=(), end=Fail(cause=TaskCause(task_id="t2"), error=ERROR)
    ),
    "append_checkpoint that retries": _checkpoint(
        Ended(status="awaiting_retry", revision=3),
        records=(),
        end=Retry(cause=SelfCause(), error=ERROR, next_attempt_at=AT),
    ),
    "append_checkpoint that parks": _checkpoint(
        InboxMoved(messages=MESSAGES),
        records=(),
        end=Park(waits=(Wait(kind="event", key="paid", ordinal=0, deadline_at=AT),), seen_seq=0),
    ),
    "append_checkpoint that stalls": _checkpoint(
        Ended(status="stalled", revision=3), records=(), end=Stall(reason="diverged", explanation="recorded charge, found ship")
    ),
    "append_checkpoint that yields": _checkpoint(Ended(status="paused", revision=3), records=(), end=Yield()),
    "append_checkpoint that yields and says why": _checkpoint(
        Ended(status="queued", revision=3), records=(), end=Yield(explanation="too little time")
    ),
    "append_checkpoint that hands back": _checkpoint(
        Overtaken(position=4, token="token-2", ended=(CHILD_STARTED,)), records=RECORDS[3:4], end=HandBack()
    ),
    "put_endpoint": (
        PutEndpoint(
            endpoint_id="orders",
            url="https://example.com/push",
            workflows=(WorkflowVersionField(name="order", version="1.0.0"),),
            pools=("eu",),
            secret="whsec_c2VjcmV0",
        ),
        ENDPOINT,
    ),
    "get_endpoint": (GetEndpoint(endpoint_id="a.b_c:d-e"), ENDPOINT),
    "get_endpoint with a name like a path": (GetEndpoint(endpoint_id=".."), ENDPOINT),
    "list_endpoints": (ListEndpoints(), EndpointList(endpoints=(ENDPOINT, ENDPOINT))),
    "delete_endpoint": (DeleteEndpoint(endpoint_id="orders"), EndpointDeleted(id="orders")),
    "list_signing_keys": (ListSigningKeys(), SigningKeyList(public_keys=("whpk_a", "whpk_b"))),
    "get_health": (GetHealth(), Health(version="0.1.0", claim_idle_timeout_ms=DurationMs(90_000))),
}
