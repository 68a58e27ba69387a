"""Starting a run."""

from dataclasses import dataclass
from typing import Literal, TypeAlias

from aiki_push.domain.changes import Change, CreateRun, PutReference, SaveRun
from aiki_push.domain.errors import ReferenceConflict
from aiki_push.domain.log_records import InputRecord, Tail, Transition
from aiki_push.domain.run import Run, RunOptions, RunReference
from aiki_push.domain.run_states import Queued, Scheduled
from aiki_push.domain.run_transitions import keep_in_tail
from aiki_push.domain.values import DurationMs, RunId, StoredValue, TimestampMs

ConflictPolicy: TypeAlias = Literal["error", "return_existing"]
"""What a start gets whose reference is taken by a run with another input: ReferenceConflict, or that run."""


@dataclass(frozen=True, slots=True)
class Start:
    """A run to be.

    `input` is None where the workflow takes none; `input_hash` is that of the value, wherever it is stored. `delay_ms` counts
    from the creation, by the server's clock.
    """

    namespace: str
    run_id: RunId
    workflow: str
    version: str
    input: StoredValue | None
    input_hash: str
    options: RunOptions
    delay_ms: DurationMs | None = None
    reference: str | None = None


def decide_start(start: Start, now: TimestampMs, over: RunReference | None = None) -> tuple[Change, ...]:
    """Create the run: one write, or a transaction with slot 0 where the input is too large for the tail, and with its reference.

    It is queued and due now, or scheduled for after its delay. `over` is what the reference names at present: a run that no
    longer exists.
    """
    due_at = TimestampMs(now + (start.delay_ms or 0))
    state = Scheduled(scheduled_at=due_at) if start.delay_ms else Queued(reason="new")
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
        reference=start.reference,
        created_at=now,
        revision=0,
        state=state,
        tail=Tail(position=0, records=()),
        ready_at=None if start.delay_ms else now,
        due_at=due_at,
    )
    return *map(_created, keep_in_tail(run, records, now)), *_reference_put(run, over)


def _created(change: Change) -> Change:
    return CreateRun(change.run) if isinstance(change, SaveRun) else change


def _reference_put(run: Run, over: RunReference | None) -> tuple[Change, ...]:
    if run.reference is None:
        return ()
    names = RunReference(
        etag=over.etag if over else "",
        namespace=run.namespace,
        workflow=run.workflow,
        version=run.version,
        reference=run.reference,
        run_id=run.id,
    )
    return (PutReference(names),)


def is_same_start(run: Run, start: Start) -> bool:
    """Whether `run` is what `start` asks for, so that a repeated request is the same start. A delay is not compared: it is not kept."""
    asked = (start.workflow, start.version, start.input_hash, start.options, start.reference)
    return (run.workflow, run.version, run.input_hash, run.options, run.reference) == asked


def check_holder(holder: Run, input_hash: str, policy: ConflictPolicy) -> Run:
    """The run that a start gets whose reference names `holder`: that one, in whatever state it is, and whatever its options are.

    Raises ReferenceConflict where it was started with another input and `policy` does not allow that.
    """
    if holder.input_hash != input_hash and policy == "error":
        raise ReferenceConflict(
            f"the reference is in use by run {holder.id} of {holder.workflow} {holder.version}, which was started with another "
            'input; choose another reference, or take that run by the conflict policy "return_existing"',
            run_id=holder.id,
        )
    return holder
