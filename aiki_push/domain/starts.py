"""Starting a run, and putting a stalled one back in its queue."""

from dataclasses import dataclass

from aiki_push.domain.changes import Change, CreateRun, SaveRun
from aiki_push.domain.log_records import InputRecord, Tail, Transition
from aiki_push.domain.run import MAX_OPERATIONS, Run, RunOptions
from aiki_push.domain.run_states import Queued
from aiki_push.domain.run_transitions import keep_in_tail, queue
from aiki_push.domain.values import RunId, StoredValue, TimestampMs


@dataclass(frozen=True, slots=True)
class Start:
    """A run to be: `input` is None where the workflow takes none; `input_hash` is that of the value, wherever it is stored."""

    namespace: str
    run_id: RunId
    workflow: str
    version: str
    input: StoredValue | None
    input_hash: str
    options: RunOptions


def decide_start(start: Start, now: TimestampMs) -> tuple[Change, ...]:
    """Create the run, queued and due now: one write, or a transaction with slot 0 where the input is too large for the tail."""
    state = Queued(reason="new")
    records = (
        InputRecord(at=now, value=start.input, hash=start.input_hash),
        Transition(at=now, state=state, revision=0, attempts=1),
    )
    run = Run(
        namespace=start.namespace,
        id=start.run_id,
        workflow=start.workflow,
        version=start.version,
        input_hash=start.input_hash,
        options=start.options,
        created_at=now,
        revision=0,
        state=state,
        tail=Tail(position=0, records=()),
        ready_at=now,
        due_at=now,
    )
    return tuple(_created(change) for change in keep_in_tail(run, records, now))


def _created(change: Change) -> Change:
    return CreateRun(change.run) if isinstance(change, SaveRun) else change


def is_same_start(run: Run, start: Start) -> bool:
    """Whether `run` is what `start` asks for, so that a repeated request is the same start."""
    asked = (start.workflow, start.version, start.input_hash, start.options)
    return (run.workflow, run.version, run.input_hash, run.options) == asked


def decide_requeue(run: Run, operation_id: str, now: TimestampMs) -> tuple[Change, ...]:
    """stalled → queued(redelivery) with a fresh clock; nothing where this operation was carried out before.

    Raises IllegalTransition for a run that is not stalled.
    """
    if operation_id in run.operations:
        return ()
    queued, record = queue(run, Queued(reason="redelivery"), now)
    remembered = (*run.operations, operation_id)[-MAX_OPERATIONS:]
    return keep_in_tail(queued.model_copy(update={"recoveries": 0, "operations": remembered}), (record,), now)
