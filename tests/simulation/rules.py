"""The invariants of what is stored of a run: of every look at it, and of every commit."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from aiki_push.domain.log_records import (
    AnyRecord,
    LogSlot,
    TaskBackingOff,
    TaskCancelled,
    TaskCompleted,
    TaskFailed,
    TaskStarted,
    Transition,
    WaitEnded,
    WaitStarted,
)
from aiki_push.domain.run import Run
from aiki_push.domain.run_states import TERMINAL, Queued
from aiki_push.domain.run_transitions import LEGAL
from aiki_push.errors import OutcomeUnknown, TaskInterrupted

_INTERRUPTED = (TaskInterrupted.__name__, OutcomeUnknown.__name__)


@dataclass(frozen=True, slots=True)
class Stored:
    """A run as it is stored: the header, and the slots in the order of their positions."""

    run: Run
    slots: tuple[LogSlot, ...]

    @property
    def is_sealed(self) -> bool:
        """Whether the tail is a slot by now."""
        return len(self.slots) > self.run.tail.position

    @property
    def records(self) -> tuple[AnyRecord, ...]:
        """The whole log."""
        tail = () if self.is_sealed else self.run.tail.records
        return (*(record for slot in self.slots for record in slot.records), *tail)

    @property
    def transitions(self) -> list[Transition]:
        """The transitions in the log."""
        return [record for record in self.records if isinstance(record, Transition)]


def faults_of(stored: Stored) -> Iterator[str]:
    """What is wrong with a run, seen by itself."""
    yield from _faults_of_slots(stored)
    yield from _faults_of_header(stored.run)
    yield from _faults_of_transitions(stored)
    yield from _faults_of_tasks(stored.records)
    yield from _faults_of_waits(stored.records)


def _faults_of_slots(stored: Stored) -> Iterator[str]:
    run, slots = stored.run, stored.slots
    if [slot.position for slot in slots] != list(range(len(slots))):
        yield f"the log has a gap: slots {[slot.position for slot in slots]}"
    if run.tail.position > len(slots):
        yield f"the log has {len(slots)} slots, and its tail is at {run.tail.position}"
    if any(earlier.revision > later.revision for earlier, later in pairwise(slots)):
        yield f"an older claim wrote after a newer one: revisions {[slot.revision for slot in slots]}"
    if stored.is_sealed:
        hiding = slots[run.tail.position].records[: len(run.tail.records)]
        claim_id = run.claim.claim_id if run.claim else None
        if any(slot.claim_id != claim_id or slot.revision != run.revision for slot in slots[run.tail.position :]):
            yield f"a slot from the tail's position {run.tail.position} on is not by the run's owner"
        elif hiding != run.tail.records:
            yield f"slot {run.tail.position} hides records of the tail"


def _faults_of_header(run: Run) -> Iterator[str]:
    status = run.state.status
    if run.due_at is None and status not in TERMINAL | {"stalled", "paused"}:
        yield f"the run is {status} and never due: nothing will ever wake it"
    if run.due_at is not None and status in TERMINAL:
        yield f"the run is {status} and due again: it would be looked at for ever"
    if (run.claim is not None) != (status == "running"):
        yield f"the run is {status} with claim {run.claim}"
    if status == "queued" and run.ready_at is None:
        yield "the run is queued and in no queue"


def _faults_of_transitions(stored: Stored) -> Iterator[str]:
    run, transitions = stored.run, stored.transitions
    if [record.revision for record in transitions] != list(range(run.revision + 1)):
        yield f"the run is at revision {run.revision}; its log has {[record.revision for record in transitions]}"
    elif transitions[-1].state != run.state or transitions[-1].attempts != run.attempts:
        yield f"the run is {run.state} in attempt {run.attempts}; its log ends with {transitions[-1]}"
    if transitions[:1] and transitions[0].state.status not in ("scheduled", "queued"):
        yield f"the run began as {transitions[0].state.status}"
    for earlier, later in pairwise(transitions):
        legal = LEGAL[earlier.state.status].get(later.state.status)
        if later.origin != earlier.state.status or legal is None:
            yield f"the log has the illegal transition from {earlier.state.status} to {later.state.status}"
    retried = sum(record.state == Queued(reason="retry") for record in transitions)
    if run.attempts != 1 + retried:
        yield f"the run is in attempt {run.attempts} after {retried} retries"


def _faults_of_tasks(records: tuple[AnyRecord, ...]) -> Iterator[str]:
    """An execution needs a start of its own; after an interruption the attempt is the same, after a failure the next.

    In a new attempt of the workflow what completed stays so, and everything else may begin anew.
    """
    running, interrupted, ended, completed, failures = set[str](), set[str](), set[str](), set[str](), Counter[str]()
    for record in records:
        match record:
            case TaskStarted(task_id=task_id):
                if task_id in ended:
                    yield f"task {task_id} is started although it has ended"
                if task_id in running:
                    yield f"task {task_id} is started again although nothing interrupted it"
                if record.attempt != 1 + failures[task_id]:
                    yield f"task {task_id} is in attempt {record.attempt} after {failures[task_id]} failures"
                running.add(task_id)
            case TaskFailed(task_id=task_id, error=error) if error.name in _INTERRUPTED and task_id in interrupted:
                ended.add(task_id)
            case TaskCompleted(task_id=task_id) | TaskFailed(task_id=task_id) | TaskBackingOff(task_id=task_id):
                if task_id not in running:
                    yield f"task {task_id} has an outcome, {record.type}, without an execution"
                running.discard(task_id)
                if isinstance(record, TaskBackingOff):
                    failures[task_id] += 1
                else:
                    ended.add(task_id)
                if isinstance(record, TaskCompleted):
                    completed.add(task_id)
            case TaskCancelled(task_id=task_id):
                running.discard(task_id)
            case Transition(state=Queued(reason="recovery" | "yield")):
                interrupted |= running
                running.clear()
            case Transition(state=Queued(reason="retry")):
                running.clear()
                failures.clear()
                ended &= completed
            case _:
                pass


def _faults_of_waits(records: tuple[AnyRecord, ...]) -> Iterator[str]:
    deadlines: dict[tuple[str, int], int | None] = {}
    ended = set[tuple[str, int]]()
    for record in records:
        match record:
            case WaitStarted(key=key, ordinal=ordinal):
                if (key, ordinal) in deadlines:
                    yield f"wait {key} {ordinal} is started twice"
                deadlines[key, ordinal] = record.deadline_at
            case WaitEnded(key=key, ordinal=ordinal):
                if (key, ordinal) in ended or (key, ordinal) not in deadlines:
                    yield f"wait {key} {ordinal} ends twice, or without a beginning"
                elif record.at < (deadlines[key, ordinal] or 0):
                    yield f"wait {key} {ordinal} ends at {record.at}, before its deadline {deadlines[key, ordinal]}"
                ended.add((key, ordinal))
            case Transition(state=Queued(reason="retry")):
                deadlines.clear()
                ended.clear()
            case _:
                pass


def faults_between(before: Stored, after: Stored) -> Iterator[str]:
    """What is wrong with a commit that made `after` of `before`."""
    if after.records[: len(before.records)] != before.records:
        yield "records that were in the log are gone, or hidden"
    if after.slots[: len(before.slots)] != before.slots:
        yield "a slot was changed"
    if after.run.revision not in (before.run.revision, before.run.revision + 1):
        yield f"the revision went from {before.run.revision} to {after.run.revision}"
    if before.run.state.status in TERMINAL and (after.slots, after.run.revision) != (before.slots, before.run.revision):
        yield f"the run is {before.run.state.status}, and was changed"
    claim_id = before.run.claim.claim_id if before.run.claim else None
    for slot in after.slots[len(before.slots) :]:
        if slot.checkpoint_id is not None and slot.claim_id != claim_id:
            yield f"claim {slot.claim_id} wrote slot {slot.position} while the run's owner was {claim_id}"
    if claim_id is not None and after.run.claim is not None and after.run.claim.claim_id != claim_id:
        yield f"the run went from owner {claim_id} to {after.run.claim.claim_id} in one step"


def is_finished(stored: Stored) -> bool:
    """Whether nothing will happen to the run any more."""
    return stored.run.state.status in TERMINAL
