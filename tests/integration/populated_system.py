"""A server that has something of everything, so that requests made by a machine meet more than `not_found`."""

from collections.abc import Mapping, Sequence

from aiki_push.domain.log_records import InputRecord
from aiki_push.domain.values import MAX_INLINE_BYTES, DurationMs, Json, PayloadReference, RunId
from aiki_push.ports.api.claims import Stall
from aiki_push.ports.api.endpoints import PutEndpoint, WorkflowVersionField
from aiki_push.ports.api.runs import GetHistory, ListRuns, StartOptions, StartReference, StartRun
from aiki_push.testing.clocks import FakeClock
from tests.integration.owners import FINISH, PARK, Owner, claim, started
from tests.local_system import NAMESPACE, LocalSystem

Scene = Mapping[str, Json]
"""Values that belong together, by the names of the fields that carry them."""


def populated_system() -> tuple[LocalSystem, Sequence[Scene]]:
    """A system with runs in many states, and what a request must say to meet each of them."""
    system = LocalSystem(clock=FakeClock())
    queued, scheduled, fresh, busy, parked, completed, stalled, large = (RunId(f"{number:026}") for number in range(8))
    _start(system, StartRun(run_id=scheduled, workflow="w", version="1", options=StartOptions(delay_ms=DurationMs(60_000))))
    for run_id in (fresh, busy, parked, completed, stalled):
        _start(system, StartRun(run_id=run_id, workflow="w", version="1", input={"a": 1}))
    owner, releasable = _owner(system, busy), _owner(system, fresh)
    owner.append(started("task-1"))
    for run_id, end in ((parked, PARK), (completed, FINISH), (stalled, Stall(reason="diverged", explanation="it changed"))):
        ended = _owner(system, run_id)
        ended.send(ended.checkpoint(end=end))
    reference = StartReference(id="order 1")
    _start(system, StartRun(run_id=queued, workflow="w", version="1", input=None, reference=reference))
    _start(system, StartRun(run_id=large, workflow="large", version="1", input="x" * (MAX_INLINE_BYTES + 1)))
    endpoint = PutEndpoint(
        endpoint_id="e1", url="http://127.0.0.1:1/push", workflows=(WorkflowVersionField(name="w", version="1"),)
    )
    system.server.call(NAMESPACE, endpoint)
    page = system.server.call(NAMESPACE, ListRuns(limit=1))
    return system, [
        *({"run_id": run_id} for run_id in (queued, scheduled, busy, parked, completed, stalled)),
        {"run_id": queued, "revision": 0},
        {"run_id": queued, "workflow": "w", "version": "1"},
        *({"run_id": run_id, "token": owner.token} for run_id, owner in ((fresh, releasable), (busy, owner))),
        {"run_id": busy, "token": owner.token, "position": owner.position},
        {"run_id": busy, "token": owner.token, "position": owner.position, "records": []},
        {"run_id": large, "sha256": _sha256_of_input(system, large)},
        {"workflow": "w", "version": "1", "input": None, "reference": {"id": reference.id}},
        {"workflow": "w", "version": "1", "reference": reference.id, "limit": 1},
        {"limit": 1, "cursor": page.next_cursor},
        {"workflows": [{"name": "w", "version": "1"}, {"name": "large", "version": "1"}], "limit": 2, "pools": []},
        {"endpoint_id": endpoint.endpoint_id},
        {"endpoint_id": "e1", "url": "https://example.com/push", "workflows": [{"name": "w", "version": "1"}], "secret": None},
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
