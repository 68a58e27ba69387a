"""One call of a task in this segment, and the records that it brings."""

import asyncio
from dataclasses import dataclass

from aiki_push.domain.errors import NotSerializable, PayloadTooLarge
from aiki_push.domain.log_records import RecordedError, TaskBackingOff, TaskCompleted, TaskFailed, TaskStarted
from aiki_push.domain.retry import is_retryable, retry_delay_ms
from aiki_push.domain.values import Inline, Json, TimestampMs
from aiki_push.sdk.calls import TaskCall
from aiki_push.sdk.failures import OutcomeUnknown, TaskInterrupted
from aiki_push.sdk.replay.recorded import RecordedTask
from aiki_push.sdk.replay.recorded_errors import record_error


@dataclass(slots=True, eq=False)
class LiveTask:
    """A call that the workflow made in this segment. `recorded` is what the log knew of it before."""

    call: TaskCall
    task_id: str
    ordinal: int
    future: asyncio.Future[Json]
    recorded: RecordedTask | None
    attempt: int = 1
    next_attempt_at: TimestampMs = TimestampMs(0)
    execution: asyncio.Task[None] | None = None
    is_cancelled: bool = False

    @property
    def title(self) -> str:
        """What it is called in messages."""
        return f"{self.call.name} (call {self.ordinal + 1} with its input, {self.call.input_hash[:8]})"

    def fits(self, left_ms: float) -> bool:
        """Whether an execution can be expected to end within `left_ms`."""
        return left_ms > 0 and (self.call.expected_ms is None or self.call.expected_ms <= left_ms)

    def started(self, at: TimestampMs) -> TaskStarted:
        """The record that its handler is about to run."""
        return TaskStarted(
            at=at,
            task_id=self.task_id,
            name=self.call.name,
            input_hash=self.call.input_hash,
            ordinal=self.ordinal,
            attempt=self.attempt,
            input=self.call.input,
        )

    def completed(self, at: TimestampMs, output: Json) -> TaskCompleted:
        """The record that its handler returned."""
        return TaskCompleted(at=at, task_id=self.task_id, attempt=self.attempt, output=Inline(value=output))

    def failed(self, at: TimestampMs, error: RecordedError, *, is_final: bool = False) -> TaskFailed:
        """The record that it is not tried again; `is_final` ends the workflow's retries too."""
        return TaskFailed(at=at, task_id=self.task_id, attempt=self.attempt, error=error, is_final=is_final)

    def raised(self, at: TimestampMs, error: BaseException, jitter: float) -> TaskFailed | TaskBackingOff:
        """The record that its handler raised: what the retry strategy makes of it."""
        recorded = record_error(error)
        is_final = isinstance(error, NotSerializable | PayloadTooLarge) or not is_retryable(self.call.retry, error)
        delay_ms = None if is_final else retry_delay_ms(self.call.retry, self.attempt, jitter)
        if delay_ms is None:
            return self.failed(at, recorded, is_final=is_final)
        return TaskBackingOff(
            at=at, task_id=self.task_id, attempt=self.attempt, error=recorded, next_attempt_at=TimestampMs(at + delay_ms)
        )


def interruption_of(live: LiveTask, max_interruptions: int) -> RecordedError | None:
    """Why a call whose executions were cut off must fail rather than run once more; None where it may."""
    recorded = live.recorded
    if recorded is None:
        return None
    if recorded.is_open and live.call.interrupted == "fail":
        message = "an execution was cut off before its outcome was recorded; its effect may or may not have taken place"
        return RecordedError(name=OutcomeUnknown.__name__, message=message)
    if recorded.interruptions > max_interruptions:
        message = f"{recorded.interruptions} executions were cut off before they ended; the task must fit into one"
        return RecordedError(name=TaskInterrupted.__name__, message=message)
    return None
