"""The table of the server: which use case answers which operation."""

from collections.abc import Callable, Mapping
from importlib.metadata import version
from typing import Any, TypeVar, cast

from aiki_push.domain.values import DurationMs
from aiki_push.ports.api.checkpoints import AppendCheckpoint
from aiki_push.ports.api.claims import ClaimRun, ClaimRuns, GetInbox, GetLog, RefreshClaim, ReleaseClaim
from aiki_push.ports.api.controls import CancelRun, PauseRun, RequeueRun, ResumeRun, WakeUpRun
from aiki_push.ports.api.endpoints import DeleteEndpoint, GetEndpoint, ListEndpoints, PutEndpoint
from aiki_push.ports.api.events import MulticastEvent, SendEvent
from aiki_push.ports.api.health import GetHealth, Health
from aiki_push.ports.api.operation import Operation
from aiki_push.ports.api.runs import GetHistory, GetPayload, GetRun, ListRuns, StartRun, WaitRun
from aiki_push.ports.api.signing_keys import ListSigningKeys, SigningKeyList
from aiki_push.server import checkpoints, claims, controls, endpoints, events, pulled_claims, run_lists, runs, starts
from aiki_push.server.context import ServerContext

R = TypeVar("R")

UseCase = Callable[[ServerContext, str, Any], object]  # the operation's own type: the table below pairs them


def _health(context: ServerContext, _namespace: str, _request: GetHealth) -> Health:
    return Health(version=version("aiki-push"), claim_idle_timeout_ms=DurationMs(context.limits.claim_idle_timeout_ms))


def _signing_keys(context: ServerContext, _namespace: str, _request: ListSigningKeys) -> SigningKeyList:
    return SigningKeyList(public_keys=context.keys.public_keys())


USE_CASES: Mapping[type[Operation[Any]], UseCase] = {
    StartRun: starts.start,
    GetRun: runs.get,
    ListRuns: run_lists.list_runs,
    WaitRun: runs.wait,
    GetHistory: runs.history,
    PauseRun: controls.pause,
    ResumeRun: controls.resume,
    CancelRun: controls.cancel,
    WakeUpRun: controls.wake_up,
    RequeueRun: controls.requeue,
    SendEvent: events.send,
    MulticastEvent: events.multicast,
    GetPayload: runs.payload,
    ClaimRun: claims.claim,
    ClaimRuns: pulled_claims.claim_many,
    GetLog: claims.log,
    GetInbox: claims.inbox,
    RefreshClaim: claims.refresh,
    ReleaseClaim: claims.release,
    AppendCheckpoint: checkpoints.checkpoint,
    PutEndpoint: endpoints.put,
    GetEndpoint: endpoints.get,
    ListEndpoints: endpoints.list_all,
    DeleteEndpoint: endpoints.delete,
    ListSigningKeys: _signing_keys,
    GetHealth: _health,
}


class Server:
    """The server's side of the API (ports.api.operation.Service), over the ports of `context`."""

    def __init__(self, context: ServerContext) -> None:
        self._context = context

    def call(self, namespace: str, operation: Operation[R]) -> R:
        """Perform `operation` in `namespace`. Raises the ApiErrors that the operation names."""
        answer = USE_CASES[type(operation)](self._context, namespace, operation)
        return cast(R, answer)
