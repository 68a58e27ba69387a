"""What a run's log says happened before: its calls by key and ordinal, and their outcomes in recorded order."""

from collections.abc import Iterable
from dataclasses import dataclass, field

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
    UnknownRecord,
    WaitEnded,
    WaitStarted,
)
from aiki_push.domain.run_states import Queued, Running
from aiki_push.domain.values import StoredValue, TimestampMs
from aiki_push.sdk.replay.recorded import CallKey, RecordedCall, RecordedTask, RecordedWait, WaitKey, task_key


@dataclass(slots=True)
class Memory:
    """The log, read. `started_at` is when the present workflow attempt began; `claimed_at` when the present claim did; `last_at` is the
    latest time that any record has.

    `received` are the numbers of the events that were given to a wait, in any attempt: nobody else gets them.
    """

    tasks: dict[CallKey, RecordedTask] = field(default_factory=dict)
    calls: dict[CallKey, RecordedCall] = field(default_factory=dict)
    waits: dict[WaitKey, RecordedWait] = field(default_factory=dict)
    received: set[int] = field(default_factory=set)
    input: StoredValue | None = None
    started_at: TimestampMs = TimestampMs(0)
    claimed_at: TimestampMs = TimestampMs(0)
    last_at: TimestampMs = TimestampMs(0)
    unknown: UnknownRecord | None = None
    _by_id: dict[str, RecordedTask] = field(default_factory=dict)
    _executing: set[str] = field(default_factory=set)
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

    @property
    def has_worked(self) -> bool:
        """Whether the workflow did anything that is recorded."""
        return bool(self.tasks or self.calls or self.waits)

    def _read(self, record: AnyRecord) -> None:
        match record:
            case TaskStarted():
                self._task_started(record)
            case TaskCompleted() | TaskFailed() | TaskBackingOff() | TaskCancelled():
                self._execution_ended(self._by_id[record.task_id], record)
            case WaitStarted() | WaitEnded() | Received():
                self._wait(record)
            case CallEnded():
                self.calls[record.key, record.ordinal] = RecordedCall(record, self._length)
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
        task.attempt, task.is_cancelled, task.backing_off = record.attempt, False, None
        task.is_open = task.is_required = True
        self._executing.add(record.task_id)

    def _execution_ended(self, task: RecordedTask, record: TaskCompleted | TaskFailed | TaskBackingOff | TaskCancelled) -> None:
        task.is_open = task.is_open and isinstance(record, TaskCancelled)  # how far a cancelled handler came, nobody knows
        self._executing.discard(record.task_id)
        match record:
            case TaskBackingOff():
                task.backing_off = record
            case TaskCancelled():
                task.is_cancelled = True
            case outcome:
                task.outcome, task.outcome_index = outcome, self._length

    def _wait(self, record: WaitStarted | WaitEnded | Received) -> None:
        wait = self.waits.setdefault((record.kind, record.key, record.ordinal), RecordedWait())
        if isinstance(record, WaitStarted):
            wait.deadline_at = record.deadline_at
            return
        wait.ended, wait.ended_index = record, self._length
        if isinstance(record, Received) and record.kind == "event":
            self.received.add(record.seq)

    def _transition(self, record: Transition) -> None:
        match record.state:
            case Running():
                self.started_at = self.started_at or record.at
                self.claimed_at = record.at
                return
            case Queued(reason="recovery" | "yield"):
                for task_id in self._executing:
                    self._by_id[task_id].interruptions += 1
            case Queued(reason="retry"):
                self._begin_attempt()
            case _:
                pass
        self._executing.clear()  # a pause or a release is no interruption, and what follows it does not count again

    def _begin_attempt(self) -> None:
        """The workflow starts anew.

        What completed, was received, slept or started is given if it is asked for; what failed or was cut off may run again, and
        timers and waits that timed out begin again.
        """
        self.started_at = TimestampMs(0)
        self.waits = {key: wait for key, wait in self.waits.items() if _is_kept(key, wait)}
        self.calls = {key: call for key, call in self.calls.items() if call.outcome.error is None}
        for call in self.calls.values():
            call.is_required = False
        for task in self.tasks.values():
            task.is_required = False
            if not isinstance(task.outcome, TaskCompleted):
                task.restart()


def _is_kept(key: WaitKey, wait: RecordedWait) -> bool:
    return isinstance(wait.ended, Received) or (key[0] == "sleep" and wait.ended is not None)
