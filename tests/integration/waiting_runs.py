"""Runs that wait, in every state and for anything, made request by request; and what lies in their inboxes."""

from collections.abc import Sequence

from aiki_push.domain.inbox import Message
from aiki_push.domain.log_records import RecordedError
from aiki_push.domain.run_states import SelfCause, Status
from aiki_push.domain.values import DurationMs, RunId, TimestampMs
from aiki_push.domain.waits import Wait, WaitKind
from aiki_push.ports.api.calls import StartChild
from aiki_push.ports.api.checkpoints import Appended, Ended, Fail, Park, Retry, SegmentEnd, Stall
from aiki_push.ports.api.controls import CancelRun, PauseRun
from aiki_push.ports.api.runs import StartOptions, StartReference, StartRun
from tests.integration.owners import FINISH, Owner, claim, start
from tests.local_system import NAMESPACE, LocalSystem

FAR = TimestampMs(10**15 - 1)
"""Later than anything in these tests, and the latest time that the index of due runs holds."""

BOOM = RecordedError(name="ValueError", message="the shelf is empty")
FAIL = Fail(cause=SelfCause(), error=BOOM)


def numbered(number: int) -> RunId:
    """A run id for each number."""
    return RunId(f"{number:026}")


def wait(kind: WaitKind, key: str, deadline_at: TimestampMs | None = None) -> Wait:
    """The first wait with this key."""
    return Wait(kind=kind, key=key, ordinal=0, deadline_at=deadline_at)


ENDS: dict[Status, SegmentEnd] = {
    "sleeping": Park(waits=(wait("sleep", "pause", FAR),), seen_seq=0),
    "awaiting_event": Park(waits=(wait("event", "paid"),), seen_seq=0),
    "awaiting_child_workflow": Park(waits=(wait("child", "0" * 26),), seen_seq=0),
    "awaiting_task_retry": Park(waits=(wait("task_retry", "task-1", FAR),), seen_seq=0),
    "awaiting_retry": Retry(cause=SelfCause(), error=BOOM, next_attempt_at=FAR),
    "stalled": Stall(reason="diverged", explanation="it changed"),
    "completed": FINISH,
    "failed": FAIL,
}
"""How an owner leaves a run in these states."""


def run_in(system: LocalSystem, status: Status) -> RunId:
    """A new run in that state."""
    if status == "scheduled":
        delayed = StartRun(workflow="w", version="1", options=StartOptions(delay_ms=DurationMs(60_000)))
        return system.server.call(NAMESPACE, delayed).id
    run_id = start(system)
    if status == "paused":
        system.server.call(NAMESPACE, PauseRun(run_id=run_id, operation_id="pause-1"))
    elif status == "cancelled":
        system.server.call(NAMESPACE, CancelRun(run_id=run_id, operation_id="cancel-1"))
    elif status == "running":
        claim(system, run_id)
    elif status != "queued":
        end(system, run_id, ENDS[status])
    assert system.run(run_id).state.status == status
    return run_id


def end(system: LocalSystem, run_id: RunId, how: SegmentEnd = FINISH, claim_id: str = "claim-1") -> None:
    """Claim the run and end the segment at once."""
    owner = Owner(system, claim(system, run_id, claim_id))
    answer = owner.send(owner.checkpoint(end=how))
    assert isinstance(answer, Ended), answer


def parked_on(system: LocalSystem, *waits: Wait) -> RunId:
    """A new run, parked."""
    run_id = start(system)
    end(system, run_id, Park(waits=waits, seen_seq=0))
    return run_id


def start_children(owner: Owner, *children: RunId, reference: str | None = None) -> tuple[RunId, ...]:
    """Start these runs as children of the owner's run, in one checkpoint; the ids of those it got."""
    named = None if reference is None else StartReference(id=reference, conflict_policy="return_existing")
    calls = tuple(
        StartChild(key=f"child-{child}", ordinal=0, run_id=child, workflow="w", version="1", input={"a": 1}, reference=named)
        for child in children
    )
    answer = owner.send(owner.checkpoint().model_copy(update={"calls": calls}))
    assert isinstance(answer, Appended), answer
    return tuple(ended.run_id for ended in answer.ended)


def parent_of(system: LocalSystem, *children: RunId, reference: str | None = None) -> Owner:
    """The owner of a new run that has started these."""
    owner = Owner(system, claim(system, start(system)))
    start_children(owner, *children, reference=reference)
    return owner


FIRST_CHILD = numbered(1)


def parents(system: LocalSystem, number: int, *, child: int = 1) -> list[RunId]:
    """So many runs, parked until that child has ended: the first has created it, the others have found it by its reference."""
    proposed = [numbered(child + one) for one in range(number)]
    owners = [parent_of(system, run_id, reference=f"child {child}") for run_id in proposed]
    for owner in owners:
        owner.send(owner.checkpoint(end=Park(waits=(wait("child", numbered(child)),), seen_seq=0)))
    return [owner.claimed.run.id for owner in owners]


def inbox(system: LocalSystem, run_id: RunId) -> Sequence[Message]:
    """What the run was told, in order; the numbers have no gap and the header knows the last."""
    messages = system.store.inbox(NAMESPACE, run_id, after=0)
    assert [message.seq for message in messages] == list(range(1, system.run(run_id).inbox_seq + 1))
    return messages
