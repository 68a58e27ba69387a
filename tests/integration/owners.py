"""An owner of a run, written out request by request: what the tests of the protocol play with."""

from dataclasses import dataclass, field
from itertools import count

from aiki_push.domain.log_records import KnownRecord, TaskCompleted, TaskStarted
from aiki_push.domain.values import Inline, RunId, TimestampMs
from aiki_push.domain.waits import Wait
from aiki_push.ports.api.checkpoints import (
    AppendCheckpoint,
    Appended,
    CheckpointAnswer,
    Complete,
    HandBack,
    Overtaken,
    Park,
    SegmentEnd,
)
from aiki_push.ports.api.claims import Claimed, ClaimRun
from aiki_push.ports.api.runs import StartRun
from tests.local_system import NAMESPACE, LocalSystem

_NUMBERS = count(1)


def start(system: LocalSystem) -> RunId:
    """A queued run at revision 0."""
    return system.server.call(NAMESPACE, StartRun(workflow="w", version="1", input={"a": 1})).id


def claim(system: LocalSystem, run_id: RunId, claim_id: str = "claim-1") -> Claimed:
    """The run, claimed; it must be free."""
    claimed = system.server.call(NAMESPACE, ClaimRun(run_id=run_id, claim_id=claim_id, executor=f"executor of {claim_id}"))
    assert isinstance(claimed, Claimed), claimed
    return claimed


def started(task_id: str) -> TaskStarted:
    """A record that starts a task."""
    return TaskStarted(at=TimestampMs(1), task_id=task_id, name="t", input_hash="h", ordinal=0, attempt=1)


def completed(task_id: str) -> TaskCompleted:
    """A record that ends it."""
    return TaskCompleted(at=TimestampMs(2), task_id=task_id, attempt=1, output=Inline(value=task_id))


PARK = Park(waits=(Wait(kind="timer", key="timer|0", ordinal=1, deadline_at=TimestampMs(10**15)),), seen_seq=0)
FINISH = Complete(output=Inline(value="done"))


@dataclass
class Owner:
    """Sends what an honest executor would, and can repeat any of it."""

    system: LocalSystem
    claimed: Claimed
    token: str = ""
    position: int = 0
    sent: list[AppendCheckpoint] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.token, self.position = self.claimed.token, self.claimed.position

    def checkpoint(self, *records: KnownRecord, end: SegmentEnd | HandBack | None = None) -> AppendCheckpoint:
        """The next request, not sent yet."""
        return AppendCheckpoint(
            run_id=self.claimed.run.id,
            token=self.token,
            checkpoint_id=f"checkpoint-{next(_NUMBERS)}",
            position=self.position,
            records=records,
            end=end,
        )

    def send(self, request: AppendCheckpoint) -> CheckpointAnswer:
        """Send `request` and take its answer for the next one."""
        self.sent.append(request)
        answer = self.system.server.call(NAMESPACE, request)
        if isinstance(answer, Appended | Overtaken):
            self.token, self.position = answer.token, answer.position
        return answer

    def append(self, *records: KnownRecord) -> CheckpointAnswer:
        """Append `records`."""
        return self.send(self.checkpoint(*records))
