"""The invariants of a log, read by itself: of tasks, waits, and calls on other runs."""

from collections import Counter
from collections.abc import Iterator

from aiki_push.domain.log_records import (
    AnyRecord,
    CallEnded,
    Received,
    TaskBackingOff,
    TaskCancelled,
    TaskCompleted,
    TaskFailed,
    TaskStarted,
    Transition,
    WaitEnded,
    WaitStarted,
)
from aiki_push.domain.run_states import Queued
from aiki_push.errors import OutcomeUnknown, TaskInterrupted

_INTERRUPTED = (TaskInterrupted.__name__, OutcomeUnknown.__name__)


def faults_of_records(records: tuple[AnyRecord, ...]) -> Iterator[str]:
    """What is wrong with a log."""
    yield from _faults_of_tasks(records)
    yield from _faults_of_waits(records)
    yield from _faults_of_calls(records)


def _faults_of_tasks(records: tuple[AnyRecord, ...]) -> Iterator[str]:
    """An execution needs a start of its own; after one that was cut off the attempt is the same, after a failure the next.

    In a new attempt of the workflow what completed stays so, and everything else may begin anew.
    """
    running, cut_off, ended, completed, failures = set[str](), set[str](), set[str](), set[str](), Counter[str]()
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
            case TaskFailed(task_id=task_id, error=error) if error.name in _INTERRUPTED and task_id in cut_off:
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
            case Transition(state=Queued(reason="retry")):
                running.clear()
                failures.clear()
                ended &= completed
            case Transition(state=state, origin="running") if state.status in ("queued", "paused"):
                cut_off |= running
                running.clear()
            case _:
                pass


def _faults_of_waits(records: tuple[AnyRecord, ...]) -> Iterator[str]:
    """A wait ends once. In a new attempt of the workflow what was received and slept stays so; other waits begin anew."""
    deadlines: dict[tuple[str, str, int], int | None] = {}
    ended: dict[tuple[str, str, int], bool] = {}
    for record in records:
        match record:
            case WaitStarted():
                wait = (record.kind, record.key, record.ordinal)
                if wait in deadlines or wait in ended:
                    yield f"wait {wait} is started twice, or after its end"
                deadlines[wait] = record.deadline_at
            case WaitEnded():
                wait = (record.kind, record.key, record.ordinal)
                if wait in ended or wait not in deadlines:
                    yield f"wait {wait} ends twice, or without a beginning"
                elif record.at < (deadlines[wait] or 0):
                    yield f"wait {wait} ends at {record.at}, before its deadline {deadlines[wait]}"
                ended[wait] = record.kind == "sleep"
            case Received():
                wait = (record.kind, record.key, record.ordinal)
                if wait in ended:
                    yield f"wait {wait} ends twice"
                ended[wait] = True
            case Transition(state=Queued(reason="retry")):
                ended = {wait: True for wait, is_kept in ended.items() if is_kept}
                deadlines = {wait: deadline for wait, deadline in deadlines.items() if wait in ended}
            case _:
                pass


def _faults_of_calls(records: tuple[AnyRecord, ...]) -> Iterator[str]:
    """A call on another run is carried out once; in a new attempt of the workflow, again where it was refused."""
    made: dict[tuple[str, int], CallEnded] = {}
    children = Counter[str]()
    for record in records:
        match record:
            case CallEnded(key=key, ordinal=ordinal):
                if (key, ordinal) in made:
                    yield f"call {key} {ordinal} is carried out twice"
                made[key, ordinal] = record
                children[record.run_id] += record.result == "created"
            case Transition(state=Queued(reason="retry")):
                made = {call: ended for call, ended in made.items() if ended.error is None}
            case _:
                pass
    yield from (f"child {run_id} was created {count} times" for run_id, count in children.items() if count > 1)
