"""What a run's log says happened before: its calls by key and ordinal, and their outcomes in recorded order."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TypeAlias

from aiki_push.domain.ids import join_key
from aiki_push.domain.log_records import (
    AnyRecord,
    InputRecord,
    TaskBackingOff,
    TaskCancelled,
    TaskCompleted,
    TaskFailed,
    TaskStarted,
    Transition,
    UnknownRecord,
    WaitEnded,
    WaitStarted,
)
from aiki_push.domain.run_states import Queued, Running
from aiki_push.domain.values import StoredValue, TimestampMs

CallKey: TypeAlias = tuple[str, int]
"""A call's content, and which of the calls with that content it is, from 0."""


def task_key(name: str, input_hash: str) -> str:
    """The content of a task's call: its name and its input, wherever in the code it stands."""
    return join_key("task", name, input_hash)


def timer_key(branch: str) -> str:
    """The key of a branch's timers, which are told apart by their ordinals."""
    return join_key("timer", branch)


@dataclass(slots=True)
class RecordedTask:
    """One call of a task, as far as it got.

    `outcome` is its end, `outcome_index` where in the log that stands. `is_open`: an execution began and its outcome is not recorded.
    `is_required`: the present workflow attempt made this call, so its code must make it again.
    `interruptions` counts executions that were cut off by a crash or the end of an invocation; they use no attempt.
    """

    task_id: str
    name: str
    attempt: int
    is_open: bool = True
    is_required: bool = True
    is_cancelled: bool = False
    interruptions: int = 0
    backing_off: TaskBackingOff | None = None
    outcome: TaskCompleted | TaskFailed | None = None
    outcome_index: int = -1

    def restart(self) -> None:
        """Forget how far it got: under its old id it begins again with attempt 1."""
        self.attempt, self.interruptions, self.is_open, self.is_cancelled = 1, 0, False, False
        self.backing_off = self.outcome = None
        self.outcome_index = -1


@dataclass(slots=True)
class RecordedTimer:
    """A timer of the workflow: its deadline, and where in the log its end stands, if it ended."""

    deadline_at: TimestampMs | None
    ended: WaitEnded | None = None
    ended_index: int = -1


@dataclass(slots=True)
class Memory:
    """The log, read. `started_at` is when the present workflow attempt began; `last_at` the latest time that any record has."""

    tasks: dict[CallKey, RecordedTask] = field(default_factory=dict)
    timers: dict[CallKey, RecordedTimer] = field(default_factory=dict)
    input: StoredValue | None = None
    started_at: TimestampMs = TimestampMs(0)
    last_at: TimestampMs = TimestampMs(0)
    unknown: UnknownRecord | None = None
    _by_id: dict[str, RecordedTask] = field(default_factory=dict)
    _length: int = 0

    @classmethod
    def of(cls, records: Iterable[AnyRecord]) -> "Memory":
        """Read a whole log, oldest record first."""
        memory = cls()
        for record in records:
            memory._read(record)
            memory._length += 1
            memory.last_at = max(memory.last_at, record.at)
        return memory

    def _read(self, record: AnyRecord) -> None:
        match record:
            case TaskStarted():
                self._task_started(record)
            case TaskCompleted() | TaskFailed() | TaskBackingOff() | TaskCancelled():
                self._execution_ended(self._by_id[record.task_id], record)
            case WaitStarted() | WaitEnded():
                self._wait(record)
            case Transition():
                self._transition(record)
            case InputRecord():
                self.input = record.value
            case UnknownRecord():
                self.unknown = self.unknown or record

    def _task_started(self, record: TaskStarted) -> None:
        key = (task_key(record.name, record.input_hash), record.ordinal)
        task = self.tasks.get(key)
        if task is None:
            task = self.tasks[key] = RecordedTask(record.task_id, record.name, record.attempt)
            self._by_id[record.task_id] = task
        task.attempt, task.is_open, task.is_cancelled, task.backing_off = record.attempt, True, False, None
        task.is_required = True

    def _execution_ended(self, task: RecordedTask, record: TaskCompleted | TaskFailed | TaskBackingOff | TaskCancelled) -> None:
        task.is_open = False
        match record:
            case TaskBackingOff():
                task.backing_off = record
            case TaskCancelled():
                task.is_cancelled = True
            case outcome:
                task.outcome, task.outcome_index = outcome, self._length

    def _wait(self, record: WaitStarted | WaitEnded) -> None:
        key = (record.key, record.ordinal)
        if isinstance(record, WaitStarted):
            self.timers[key] = RecordedTimer(record.deadline_at)
        else:
            timer = self.timers.setdefault(key, RecordedTimer(None))
            timer.ended, timer.ended_index = record, self._length

    def _transition(self, record: Transition) -> None:
        match record.state:
            case Running() if not self.started_at:
                self.started_at = record.at
            case Queued(reason="recovery" | "yield"):
                for task in self.tasks.values():
                    if task.is_open:
                        task.interruptions += 1
            case Queued(reason="retry"):
                self._begin_attempt()
            case _:
                pass

    def _begin_attempt(self) -> None:
        """The workflow starts anew: what completed is given if it is asked for, what failed or was cut off may run again."""
        self.timers.clear()
        self.started_at = TimestampMs(0)
        for task in self.tasks.values():
            task.is_required = False
            if not isinstance(task.outcome, TaskCompleted):
                task.restart()
