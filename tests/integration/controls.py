"""What a client asks of a run from outside, and a run in each state to ask it of."""

from itertools import count
from typing import Any

from aiki_push.domain.log_records import Transition
from aiki_push.domain.values import RunId, TimestampMs
from aiki_push.domain.waits import Wait
from aiki_push.ports.api.checkpoints import Park
from aiki_push.ports.api.controls import CancelRun, PauseRun, ResumeRun, WakeUpRun
from aiki_push.ports.api.operation import Operation
from aiki_push.ports.api.runs import RunView
from tests.integration.owners import Owner, claim, start
from tests.local_system import NAMESPACE, LocalSystem

_NUMBERS = count(1)


def call(system: LocalSystem, operation: Operation[Any]) -> Any:
    """The server's answer."""
    return system.server.call(NAMESPACE, operation)


def _new() -> str:
    return f"operation-{next(_NUMBERS)}"


def pause(system: LocalSystem, run_id: str, operation_id: str | None = None) -> RunView:
    """Pause the run, by an operation of its own unless one is named."""
    view: RunView = call(system, PauseRun(run_id=run_id, operation_id=operation_id or _new()))
    return view


def resume(system: LocalSystem, run_id: str, operation_id: str | None = None) -> RunView:
    """Resume the run."""
    view: RunView = call(system, ResumeRun(run_id=run_id, operation_id=operation_id or _new()))
    return view


def cancel(system: LocalSystem, run_id: str, operation_id: str | None = None, explanation: str | None = None) -> RunView:
    """Cancel the run."""
    request = CancelRun(run_id=run_id, operation_id=operation_id or _new(), explanation=explanation)
    view: RunView = call(system, request)
    return view


def wake_up(system: LocalSystem, run_id: str, operation_id: str | None = None, sleep: str | None = None) -> RunView:
    """Wake the run up."""
    view: RunView = call(system, WakeUpRun(run_id=run_id, operation_id=operation_id or _new(), sleep=sleep))
    return view


def owned(system: LocalSystem, claim_id: str = "claim-1") -> Owner:
    """The owner of a new run, at revision 1."""
    return Owner(system, claim(system, start(system), claim_id))


def nap(deadline_at: TimestampMs) -> Park:
    """A park on a sleep named `nap`."""
    return Park(waits=(Wait(kind="sleep", key="nap", ordinal=0, deadline_at=deadline_at),), seen_seq=0)


def asleep(system: LocalSystem, deadline_at: TimestampMs) -> RunId:
    """A run that sleeps until then, at revision 2."""
    owner = owned(system)
    owner.send(owner.checkpoint(end=nap(deadline_at)))
    return owner.claimed.run.id


def transitions(system: LocalSystem, run_id: str) -> list[str]:
    """The states that the run went through."""
    return [record.state.status for record in system.records(run_id) if isinstance(record, Transition)]
