"""Every operation of the API. Routes, clients, permissions and documentation all read this list."""

from typing import Any

from aiki_push.ports.api.checkpoints import AppendCheckpoint
from aiki_push.ports.api.claims import ClaimRun, ClaimRuns, GetInbox, GetLog, RefreshClaim, ReleaseClaim
from aiki_push.ports.api.controls import CancelRun, PauseRun, RequeueRun, ResumeRun, WakeUpRun
from aiki_push.ports.api.endpoints import DeleteEndpoint, GetEndpoint, ListEndpoints, PutEndpoint
from aiki_push.ports.api.events import MulticastEvent, SendEvent
from aiki_push.ports.api.health import GetHealth
from aiki_push.ports.api.operation import Operation
from aiki_push.ports.api.runs import GetHistory, GetPayload, GetRun, ListRuns, StartRun, WaitRun
from aiki_push.ports.api.signing_keys import ListSigningKeys

CATALOGUE: tuple[type[Operation[Any]], ...] = (
    StartRun,
    GetRun,
    ListRuns,
    WaitRun,
    GetHistory,
    PauseRun,
    ResumeRun,
    CancelRun,
    WakeUpRun,
    RequeueRun,
    SendEvent,
    MulticastEvent,
    ClaimRun,
    ClaimRuns,
    GetLog,
    GetInbox,
    GetPayload,
    RefreshClaim,
    ReleaseClaim,
    AppendCheckpoint,
    PutEndpoint,
    GetEndpoint,
    ListEndpoints,
    DeleteEndpoint,
    ListSigningKeys,
    GetHealth,
)
