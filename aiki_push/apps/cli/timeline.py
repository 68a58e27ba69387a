"""A run's history as a table: when, which revision, who, and what happened."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from rich.table import Table

from aiki_push.domain.log_records import (
    AnyRecord,
    CallEnded,
    InputRecord,
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
from aiki_push.domain.run_states import Queued, Running, Stalled


@dataclass(frozen=True, slots=True)
class Row:
    """One line: `after_ms` since the run began, the revision it was written under, the executor that held the run, if any."""

    at: int
    after_ms: int
    revision: int
    executor: str
    event: str


def timeline(records: Sequence[AnyRecord]) -> Iterator[Row]:
    """A row for each record, oldest first. Inputs and outputs are not shown."""
    began_at, revision, executor = records[0].at if records else 0, 0, ""
    names: dict[str, str] = {}
    for record in records:
        if isinstance(record, TaskStarted):
            names[record.task_id] = record.name
        if isinstance(record, Transition):
            revision = record.revision
            executor = record.executor or executor if isinstance(record.state, Running) else executor
        yield Row(record.at, record.at - began_at, revision, executor, _event(record, names))
        if isinstance(record, Transition) and not isinstance(record.state, Running):
            executor = ""


def _event(record: AnyRecord, names: dict[str, str]) -> str:
    match record:
        case InputRecord():
            return "input" if record.value is not None else "no input"
        case Transition():
            return _transition(record)
        case TaskStarted():
            return f"{record.name} starts" + (f", attempt {record.attempt}" if record.attempt > 1 else "")
        case TaskCompleted() | TaskFailed() | TaskBackingOff() | TaskCancelled():
            return f"{names.get(record.task_id, record.task_id)} {_outcome(record)}"
        case WaitStarted() | WaitEnded() | Received():
            return _wait(record)
        case CallEnded():
            what = f"{record.kind} {record.name}" if record.name else record.kind
            return f"{what}, run {record.run_id}: {record.error.code if record.error else record.result}"
        case _:
            return f"{record.type} (unknown to this release)"


def _transition(record: Transition) -> str:
    reason = f" ({record.state.reason})" if isinstance(record.state, Queued | Stalled) else ""
    told = record.explanation or (f"{record.error.name}: {record.error.message}" if record.error else "")
    return f"→ {record.state.status}{reason}" + (f": {told}" if told else "")


def _wait(record: WaitStarted | WaitEnded | Received) -> str:
    what = record.kind if record.kind in ("timer", "task_retry") else f"{record.kind} {record.key}"
    match record:
        case WaitStarted():
            return f"waits ({what})"
        case WaitEnded():
            return f"wait is over ({what})"
        case Received():
            return f"takes message {record.seq} ({what})"


def _outcome(record: TaskCompleted | TaskFailed | TaskBackingOff | TaskCancelled) -> str:
    match record:
        case TaskCompleted():
            return "completed"
        case TaskCancelled():
            return "cancelled"
        case TaskFailed():
            return f"failed: {record.error.name}: {record.error.message}"
        case TaskBackingOff():
            return f"raised {record.error.name}, next attempt at {clock_time(record.next_attempt_at)}"


def clock_time(at: int) -> str:
    """Milliseconds since the epoch as a time of day in UTC."""
    return datetime.fromtimestamp(at / 1_000, UTC).strftime("%H:%M:%S.%f")[:-3]


def timeline_table(title: str, rows: Iterable[Row]) -> Table:
    """The rows, for a terminal."""
    table = Table("time (UTC)", "after", "revision", "executor", "what happened", title=title, title_justify="left")
    table.columns[1].justify = table.columns[2].justify = "right"
    for row in rows:
        table.add_row(clock_time(row.at), f"{row.after_ms / 1_000:.3f} s", str(row.revision), row.executor, row.event)
    return table
