"""A service with one answer for every operation of the catalogue, and the small fakes that the transport tests share."""

from collections.abc import Callable, Mapping
from typing import Any, TypeVar, cast

from aiki_push.domain.endpoints import WorkflowVersionName
from aiki_push.domain.inbox import Message
from aiki_push.domain.log_records import (
    InputRecord,
    LogSlot,
    RecordedError,
    Tail,
    TaskCompleted,
    TaskFailed,
    TaskStarted,
    Transition,
    UnknownRecord,
    WaitStarted,
)
from aiki_push.domain.retry import exponential, never
from aiki_push.domain.run import RunOptions
from aiki_push.domain.run_states import Completed, Failed, Queued, Running, Scheduled, Stalled, TaskCause
from aiki_push.domain.values import DurationMs, Inline, PayloadReference, RunId, TimestampMs
from aiki_push.domain.waits import Wait
from aiki_push.ports.api.claims import (
    AppendCheckpoint,
    Appended,
    Claimed,
    ClaimedRun,
    ClaimedRuns,
    ClaimRun,
    ClaimRuns,
    Complete,
    Ended,
    Fail,
    GetInbox,
    GetLog,
    HandBack,
    Inbox,
    InboxMoved,
    LogAnswer,
    NotClaimed,
    Overtaken,
    Park,
    RefreshClaim,
    Refreshed,
    ReleaseClaim,
    Released,
    Stall,
)
from aiki_push.ports.api.endpoints import (
    DeleteEndpoint,
    EndpointDeleted,
    EndpointList,
    EndpointView,
    GetEndpoint,
    ListEndpoints,
    PutEndpoint,
    WorkflowVersionField,
)
from aiki_push.ports.api.health import GetHealth, Health
from aiki_push.ports.api.operation import Operation
from aiki_push.ports.api.runs import (
    ClaimView,
    GetHistory,
    GetPayload,
    GetRun,
    History,
    HistoryEntry,
    ListRuns,
    PayloadContent,
    RequeueRun,
    RunList,
    RunSummary,
    RunView,
    StartOptions,
    StartReference,
    StartRun,
    WaitRun,
)
from aiki_push.ports.api.signing_keys import ListSigningKeys, SigningKeyList
from aiki_push.testing.clocks import FakeClock

R = TypeVar("R")

RUN_ID = RunId("01ARZ3NDEKTSV4RRFFQ69G5FAV")
PATIENCE_S = 20
"""How long a service holds what a test forgot to let go: then the test fails instead of hanging."""

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
MESSAGE = Message(seq=1, at=AT, kind="event", key="paid", data=Inline(value=None))

RECORDS = (
    InputRecord(at=AT, value=Inline(value=AWKWARD), hash="f" * 64),
    Transition(at=AT, origin="queued", state=Running(), revision=1, attempts=1, executor="worker-1"),
    TaskStarted(at=AT, task_id="t1", name="charge", input_hash="f" * 64, ordinal=0, attempt=1),
    TaskCompleted(at=AT, task_id="t1", attempt=1, output=Inline(value=None)),
    TaskFailed(at=AT, task_id="t2", attempt=3, error=ERROR),
    WaitStarted(at=AT, kind="event", key="paid", ordinal=0),
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
    claim=ClaimView(executor="worker-1", claimed_at=AT, refreshed_at=AT),
)
CLAIMED = Claimed(
    run=ClaimedRun(id=RUN_ID, workflow="order", version="1.0.0", revision=1, attempts=1, options=RunOptions(), created_at=AT),
    slots=(SLOT,),
    log_is_complete=False,
    tail=Tail(position=1, records=RECORDS[:2]),
    messages=(MESSAGE,),
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
    "wait_run": (WaitRun(run_id=RUN_ID, timeout_ms=DurationMs(1)), _run(Stalled(reason="diverged"), explanation="insert")),
    "wait_run by default": (WaitRun(run_id=RUN_ID), _run(Completed(), output=Inline(value=1.0))),
    "get_history": (
        GetHistory(run_id=RUN_ID, cursor="a.b-c_d"),
        History(entries=tuple(HistoryEntry(position=0, record=record) for record in RECORDS), next_cursor="e"),
    ),
    "get_history from the start": (GetHistory(run_id=RUN_ID), History(entries=())),
    "requeue_run": (RequeueRun(run_id=RUN_ID, operation_id="op-1"), RUN),
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
    "get_inbox": (GetInbox(run_id=RUN_ID, after=3), Inbox(messages=(MESSAGE,), inbox_seq=4, status="running", revision=2)),
    "get_payload": (GetPayload(run_id=RUN_ID, sha256="0" * 64), PayloadContent(value=AWKWARD)),
    "get_payload of null": (GetPayload(run_id=RUN_ID, sha256="0" * 64), PayloadContent(value=None)),
    "refresh_claim": (
        RefreshClaim(run_id=RUN_ID, token="token-1"),
        Refreshed(refreshed_at=AT, claim_idle_timeout_ms=DurationMs(90_000)),
    ),
    "release_claim": (ReleaseClaim(run_id=RUN_ID, token="token-1"), Released(revision=3)),
    "append_checkpoint": _checkpoint(Appended(position=4, token="token-2"), records=RECORDS[2:6]),
    "append_checkpoint that completes": _checkpoint(
        Ended(status="completed", revision=3), records=(), end=Complete(output=Inline(value=None))
    ),
    "append_checkpoint that fails": _checkpoint(
        Ended(status="failed", revision=3), records=(), end=Fail(cause=TaskCause(task_id="t2"), error=ERROR)
    ),
    "append_checkpoint that parks": _checkpoint(
        InboxMoved(messages=(MESSAGE,)),
        records=(),
        end=Park(waits=(Wait(kind="event", key="paid", ordinal=0, deadline_at=AT),), seen_seq=0),
    ),
    "append_checkpoint that stalls": _checkpoint(
        Ended(status="stalled", revision=3), records=(), end=Stall(reason="diverged", explanation="recorded charge, found ship")
    ),
    "append_checkpoint that hands back": _checkpoint(
        Overtaken(position=4, token="token-2"), records=RECORDS[3:4], end=HandBack()
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


class SampleService:
    """Gives `answer`, or the result of calling it with the operation, and keeps what it was asked."""

    def __init__(self, answer: object | Callable[[Operation[Any]], object] = None) -> None:
        self.calls: list[tuple[str, Operation[Any]]] = []
        self._answer = answer

    def call(self, namespace: str, operation: Operation[R]) -> R:
        self.calls.append((namespace, operation))
        return cast(R, self._answer(operation) if callable(self._answer) else self._answer)


def raising(error: Exception) -> Callable[[Operation[Any]], object]:
    """An answer for SampleService: `error`."""

    def answer(_operation: Operation[Any]) -> object:
        raise error

    return answer


class Pauses:
    """A sleep that takes no time but on `clock`; `seconds` are those that were asked for."""

    def __init__(self, clock: FakeClock) -> None:
        self._clock = clock
        self.seconds: list[float] = []

    async def __call__(self, seconds: float) -> None:
        self.seconds.append(seconds)
        self._clock.advance(round(seconds * 1_000))
