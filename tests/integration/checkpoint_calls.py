"""Calls on other runs, as the owner of a run sends them, and what it is answered."""

from typing import Any, Literal

from aiki_push.domain.log_records import CallEnded, CallResult, KnownRecord
from aiki_push.domain.starts import ConflictPolicy
from aiki_push.domain.values import RunId
from aiki_push.ports.api.calls import Call, ControlRun, SendEventTo, StartChild
from aiki_push.ports.api.checkpoints import AppendCheckpoint, Appended
from aiki_push.ports.api.runs import StartReference
from aiki_push.testing import FAKE_NOW
from tests.integration.owners import Owner
from tests.integration.waiting_runs import numbered


def child(number: int, *, reference: str | None = None, policy: ConflictPolicy = "error", **fields: Any) -> StartChild:
    """Start `numbered(number)`, with the input that other runs of these tests have unless another one is given."""
    named = None if reference is None else StartReference(id=reference, conflict_policy=policy)
    asked = {"workflow": "w", "version": "1", "input": {"a": 1}, "reference": named, **fields}
    return StartChild.model_validate({"key": "child", "ordinal": number, "run_id": numbered(number), **asked})


def event(run_id: RunId, **fields: Any) -> SendEventTo:
    """Send the event `paid`, without data unless some is given."""
    sent = {"key": "event", "ordinal": 0, "run_id": run_id, "event": "paid", "reference": "payment 1"}
    return SendEventTo.model_validate({**sent, **fields})


def control(kind: Literal["cancel", "pause", "resume", "wakeup"], run_id: RunId, **fields: Any) -> ControlRun:
    """Control that run."""
    asked = {"kind": kind, "key": kind, "ordinal": 0, "run_id": run_id, "operation_id": "operation-1"}
    return ControlRun.model_validate({**asked, **fields})


def calling(owner: Owner, *calls: Call, records: tuple[KnownRecord, ...] = ()) -> AppendCheckpoint:
    """The owner's next checkpoint, with these calls; not sent yet."""
    return owner.checkpoint(*records).model_copy(update={"calls": calls})


def carry_out(owner: Owner, *calls: Call, records: tuple[KnownRecord, ...] = ()) -> tuple[CallEnded, ...]:
    """Send that checkpoint; the outcomes of its calls."""
    return sent(owner, calling(owner, *calls, records=records))


def sent(owner: Owner, request: AppendCheckpoint) -> tuple[CallEnded, ...]:
    """Send a request with calls; their outcomes."""
    answer = owner.send(request)
    assert isinstance(answer, Appended), answer
    return answer.ended


def ended(call: Call, result: CallResult, run_id: RunId | None = None) -> CallEnded:
    """The outcome of a call that was carried out at FAKE_NOW, on the run that it named unless another one is given."""
    match call:
        case StartChild():
            name: str | None = f"{call.workflow} {call.version}"
        case SendEventTo():
            name = call.event
        case ControlRun():
            name = call.sleep
    return CallEnded(
        at=FAKE_NOW,
        kind=call.kind,
        key=call.key,
        ordinal=call.ordinal,
        run_id=run_id or call.run_id,
        name=name,
        result=result,
    )


def results(outcomes: tuple[CallEnded, ...]) -> list[str]:
    """The result of each, or the code of its error."""
    return [outcome.error.code if outcome.error else str(outcome.result) for outcome in outcomes]
