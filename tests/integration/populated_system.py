"""A server that has something of everything, so that requests made by a machine meet more than `not_found`."""

from collections.abc import Mapping, Sequence

from aiki_push.domain.log_records import InputRecord
from aiki_push.domain.values import MAX_INLINE_BYTES, DurationMs, Json, PayloadReference, RunId, TimestampMs
from aiki_push.domain.waits import Wait
from aiki_push.ports.api.checkpoints import Park, Stall
from aiki_push.ports.api.controls import CancelRun, PauseRun
from aiki_push.ports.api.endpoints import PutEndpoint, WorkflowVersionField
from aiki_push.ports.api.events import SendEvent
from aiki_push.ports.api.runs import GetHistory, ListRuns, StartOptions, StartReference, StartRun
from aiki_push.testing.clocks import FakeClock
from tests.integration.owners import FINISH, PARK, Owner, claim, started
from tests.local_system import NAMESPACE, LocalSystem

Scene = Mapping[str, Json]
"""Values that belong together, by the names of the fields that carry them."""


def populated_system() -> tuple[LocalSystem, Sequence[Scene]]:
    """A system with runs in many states, and what a request must say to meet each of them."""
    system = LocalSystem(clock=FakeClock())
    queued, scheduled, fresh, busy, parked, completed, stalled, large, paused, cancelled, waiting, unborn = (
        RunId(f"{number:026}") for number in range(12)
    )
    _start(system, StartRun(run_id=scheduled, workflow="w", version="1", options=StartOptions(delay_ms=DurationMs(60_000))))
    for run_id in (fresh, busy, parked, completed, stalled, paused, cancelled, waiting):
        _start(system, StartRun(run_id=run_id, workflow="w", version="1", input={"a": 1}))
    owner, releasable = _owner(system, busy), _owner(system, fresh)
    owner.append(started("task-1"))
    stall = Stall(reason="diverged", explanation="it changed")
    for run_id, end in ((parked, PARK), (completed, FINISH), (stalled, stall), (waiting, WAIT)):
        ended = _owner(system, run_id)
        ended.send(ended.checkpoint(end=end))
    system.server.call(NAMESPACE, PauseRun(run_id=paused, operation_id="pause-1"))
    system.server.call(NAMESPACE, CancelRun(run_id=cancelled, operation_id="cancel-1"))
    reference = StartReference(id="order 1")
    _start(system, StartRun(run_id=queued, workflow="w", version="1", input=None, reference=reference))
    system.server.call(NAMESPACE, SendEvent(run_id=queued, event="paid", data=1, reference="payment 1"))
    _start(system, StartRun(run_id=large, workflow="large", version="1", input="x" * (MAX_INLINE_BYTES + 1)))
    endpoint = PutEndpoint(
        endpoint_id="e1", url="http://127.0.0.1:1/push", workflows=(WorkflowVersionField(name="w", version="1"),)
    )
    system.server.call(NAMESPACE, endpoint)
    page = system.server.call(NAMESPACE, ListRuns(limit=1))
    write: Scene = {"run_id": busy, "token": owner.token, "position": owner.position, "records": []}
    by_id: list[Json] = [{"by": "run_id", "run_id": run_id} for run_id in (waiting, completed, unborn)]
    targets: Json = [
        *by_id,
        {"by": "reference", "workflow": "w", "version": "1", "reference": reference.id},
    ]
    return system, [
        *({"run_id": run_id} for run_id in (queued, scheduled, busy, parked, completed, stalled, paused, cancelled)),
        *({"run_id": waiting, "sleep": sleep} for sleep in (None, "nap")),
        *({"run_id": run_id, "event": "paid"} for run_id in (queued, busy, waiting, cancelled, unborn)),
        {"run_id": queued, "event": "paid", "data": 1, "reference": "payment 1"},
        {"event": "paid", "targets": targets},
        {"run_id": queued, "revision": 0},
        {"run_id": queued, "workflow": "w", "version": "1"},
        *({"run_id": run_id, "token": owner.token} for run_id, owner in ((fresh, releasable), (busy, owner))),
        {"run_id": busy, "token": owner.token, "position": owner.position},
        write,
        {**write, "calls": _calls(queued, waiting, paused, completed, unborn), "end": None},
        {**write, "calls": [_call("cancel", busy, operation_id="o"), _call("pause", busy, operation_id="o")]},
        {"run_id": large, "sha256": _sha256_of_input(system, large)},
        {"workflow": "w", "version": "1", "input": None, "reference": {"id": reference.id}},
        {"workflow": "w", "version": "1", "reference": reference.id, "limit": 1},
        {"limit": 1, "cursor": page.next_cursor},
        {"workflows": [{"name": "w", "version": "1"}, {"name": "large", "version": "1"}], "limit": 2, "pools": []},
        {"endpoint_id": endpoint.endpoint_id},
        {"endpoint_id": "e1", "url": "https://example.com/push", "workflows": [{"name": "w", "version": "1"}], "secret": None},
    ]


WAIT = Park(
    waits=(
        Wait(kind="event", key="paid", ordinal=0),
        Wait(kind="sleep", key="nap", ordinal=0, deadline_at=TimestampMs(10**15)),
    ),
    seen_seq=0,
)


def _call(kind: str, run_id: RunId, **fields: Json) -> Json:
    return {"kind": kind, "key": f"{kind} {run_id}", "ordinal": 0, "run_id": run_id, **fields}


def _calls(queued: RunId, waiting: RunId, paused: RunId, completed: RunId, unborn: RunId) -> Json:
    """One of each kind: some of them can be carried out, others cannot."""
    reference: Json = {"id": "order 1", "conflict_policy": "error"}
    return [
        _call("child", unborn, workflow="w", version="1", input={"a": 1}),
        _call("child", RunId(f"{99:026}"), workflow="w", version="1", reference=reference),
        _call("send_event", waiting, event="paid", data=1, reference="payment 2"),
        _call("cancel", completed, operation_id="operation-1", explanation="too late"),
        _call("resume", paused, operation_id="operation-2"),
        _call("pause", queued, operation_id="operation-3"),
        _call("wakeup", RunId(f"{98:026}"), operation_id="operation-4", sleep="nap"),
    ]


def _start(system: LocalSystem, request: StartRun) -> None:
    system.server.call(NAMESPACE, request)


def _owner(system: LocalSystem, run_id: RunId) -> Owner:
    return Owner(system, claim(system, run_id))


def _sha256_of_input(system: LocalSystem, run_id: RunId) -> str:
    record = system.server.call(NAMESPACE, GetHistory(run_id=run_id)).entries[0].record
    assert isinstance(record, InputRecord)
    assert isinstance(record.value, PayloadReference)
    return record.value.sha256
