"""What a replay takes from a log: after interruptions, and after an attempt of the workflow that failed."""

from itertools import count
from typing import Any

import pytest

from aiki_push.domain.log_records import (
    AnyRecord,
    CallEnded,
    CallError,
    InputRecord,
    Received,
    RecordedError,
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
from aiki_push.domain.run_states import AnyState, AwaitingRetry, Paused, Queued, QueuedReason, Running, SelfCause
from aiki_push.domain.values import Inline, RunId, TimestampMs
from aiki_push.sdk.replay.memory import Memory
from aiki_push.sdk.replay.recorded import RecordedTask, RecordedWait, WaitKey, task_key

ERROR = RecordedError(name="E", message="m")
CHILD = RunId("01M8MER5BZSFP81HXYFC8VWCSD")


class Log:
    """A log in the making. Each record is a millisecond after the one before."""

    def __init__(self) -> None:
        self.records: list[AnyRecord] = []
        self._times = count(1)

    def add(self, kind: Any, /, **fields: Any) -> Any:
        record = kind(at=TimestampMs(next(self._times)), **fields)
        self.records.append(record)
        return record

    def enter(self, *states: AnyState) -> None:
        for state in states:
            self.add(Transition, state=state, revision=0, attempts=1)

    def start(self, name: str, attempt: int = 1) -> TaskStarted:
        started: TaskStarted = self.add(TaskStarted, task_id=name, name=name, input_hash="h", ordinal=0, attempt=attempt)
        return started

    def retry(self) -> None:
        """The workflow raised, and starts anew."""
        self.enter(AwaitingRetry(next_attempt_at=TimestampMs(50), cause=SelfCause()), Queued(reason="retry"), Running())

    @property
    def memory(self) -> Memory:
        return Memory.of(self.records)

    def task(self, name: str) -> RecordedTask:
        return self.memory.tasks[task_key(name, "h"), 0]

    def wait(self, key: WaitKey) -> RecordedWait | None:
        return self.memory.waits.get(key)


@pytest.fixture
def log() -> Log:
    log = Log()
    log.add(InputRecord, value=Inline(value=5), hash="h")
    log.enter(Queued(reason="new"), Running())
    return log


def test_a_run_that_did_nothing_has_an_input_and_the_time_of_its_claim(log: Log) -> None:
    memory = log.memory
    assert (memory.input, memory.started_at, memory.last_at) == (Inline(value=5), 3, 3)
    assert (memory.tasks, memory.calls, memory.waits, memory.received, memory.unknown) == ({}, {}, {}, set(), None)
    assert not memory.has_worked


@pytest.mark.parametrize(
    ("reason", "interruptions"),
    [("recovery", 1), ("yield", 1), ("released", 0), ("resumption", 0), ("wakeup", 0), ("redelivery", 0), ("task_retry", 0)],
)
def test_a_task_was_interrupted_where_its_execution_ended_with_the_executor(
    log: Log, reason: QueuedReason, interruptions: int
) -> None:
    log.start("ship")
    log.enter(Queued(reason=reason), Running())
    task = log.task("ship")
    assert (task.interruptions, task.is_open, task.is_required, task.attempt) == (interruptions, True, True, 1)


def test_a_pause_is_no_interruption_even_if_its_executor_is_recovered_afterwards(log: Log) -> None:
    log.start("ship")
    log.enter(Paused(), Queued(reason="resumption"), Running(), Queued(reason="recovery"), Running())
    assert log.task("ship").interruptions == 0


def test_each_execution_that_was_cut_off_counts_and_one_that_ended_does_not(log: Log) -> None:
    for _ in range(3):
        log.start("ship")
        log.start("print")
        log.add(TaskCompleted, task_id="print", attempt=1, output=Inline(value=1))
        log.enter(Queued(reason="recovery"), Running())
        log.enter(Queued(reason="recovery"), Running())  # executed nothing
    assert (log.task("ship").interruptions, log.task("print").interruptions) == (3, 0)


def test_an_outcome_stands_where_it_was_recorded(log: Log) -> None:
    log.start("ship")
    log.start("print")
    printed = log.add(TaskCompleted, task_id="print", attempt=1, output=Inline(value=1))
    failed = log.add(TaskFailed, task_id="ship", attempt=1, error=ERROR)
    assert [(log.task(name).outcome, log.task(name).outcome_index) for name in ("print", "ship")] == [(printed, 5), (failed, 6)]


def test_a_task_that_backs_off_or_is_cancelled_has_no_outcome_and_starting_it_ends_both(log: Log) -> None:
    log.start("ship")
    backing_off = log.add(TaskBackingOff, task_id="ship", attempt=1, error=ERROR, next_attempt_at=TimestampMs(9))
    log.start("print")
    log.add(TaskCancelled, task_id="print")
    before = [log.task("ship"), log.task("print")]
    log.start("ship", attempt=2)
    log.start("print")
    after = [log.task("ship"), log.task("print")]
    assert [(task.is_open, task.backing_off, task.is_cancelled, task.attempt) for task in before + after] == [
        (False, backing_off, False, 1),
        (True, None, True, 1),
        (True, None, False, 2),
        (True, None, False, 1),
    ]


def test_an_attempt_begins_with_the_claim_after_the_retry(log: Log) -> None:
    log.retry()
    first = log.memory.started_at
    log.enter(Queued(reason="recovery"), Running())
    assert (first, log.memory.started_at, log.memory.last_at) == (6, 6, 8)


def test_in_another_attempt_what_completed_is_kept_and_nothing_is_required(log: Log) -> None:
    log.start("print")
    printed = log.add(TaskCompleted, task_id="print", attempt=1, output=Inline(value=1))
    log.retry()
    assert log.task("print") == RecordedTask(
        "print", "print", 1, is_open=False, is_required=False, outcome=printed, outcome_index=4
    )


@pytest.mark.parametrize("end", ["failed", "cancelled", "backing off", "cut off", "interrupted"])
def test_in_another_attempt_what_did_not_complete_runs_again_under_its_old_id(log: Log, end: str) -> None:
    log.start("ship")
    log.start("ship", attempt=2)
    match end:
        case "failed":
            log.add(TaskFailed, task_id="ship", attempt=2, error=ERROR)
        case "cancelled":
            log.add(TaskCancelled, task_id="ship")
        case "backing off":
            log.add(TaskBackingOff, task_id="ship", attempt=2, error=ERROR, next_attempt_at=TimestampMs(9))
        case "interrupted":
            log.enter(Queued(reason="recovery"), Running())
    log.retry()
    # Nobody knows how far an execution came that was cut off or cancelled: a task that must not be repeated blindly is not, in any attempt.
    is_open = end in ("cut off", "interrupted", "cancelled")
    assert log.task("ship") == RecordedTask("ship", "ship", 1, is_open=is_open, is_required=False)


def test_what_another_attempt_starts_again_it_must_start_again_on_a_replay(log: Log) -> None:
    log.start("ship")
    log.add(TaskFailed, task_id="ship", attempt=1, error=ERROR)
    log.retry()
    log.start("ship")
    shipped = log.add(TaskCompleted, task_id="ship", attempt=1, output=Inline(value=1))
    task = log.task("ship")
    assert (task.is_required, task.outcome, task.task_id) == (True, shipped, "ship")


def wait_fields(kind: str, key: str, ordinal: int = 0) -> dict[str, Any]:
    return {"kind": kind, "key": key, "ordinal": ordinal}


def test_in_another_attempt_messages_and_sleeps_that_ended_are_kept(log: Log) -> None:
    received = log.add(Received, seq=1, **wait_fields("event", "paid"))
    ended = log.add(Received, seq=2, **wait_fields("child", CHILD))
    log.add(WaitStarted, deadline_at=TimestampMs(20), **wait_fields("sleep", "nap"))
    woken = log.add(Received, seq=3, **wait_fields("sleep", "nap"))
    slept = log.add(WaitEnded, **wait_fields("sleep", "nap", 1))
    log.retry()
    assert log.memory.waits == {
        ("event", "paid", 0): RecordedWait(None, received, 3),
        ("child", CHILD, 0): RecordedWait(None, ended, 4),
        ("sleep", "nap", 0): RecordedWait(TimestampMs(20), woken, 6),
        ("sleep", "nap", 1): RecordedWait(None, slept, 7),
    }


def test_in_another_attempt_timers_timeouts_and_waits_under_way_begin_anew(log: Log) -> None:
    for kind in ("timer", "event", "child"):
        log.add(WaitStarted, deadline_at=TimestampMs(20), **wait_fields(kind, "a"))
        log.add(WaitEnded, **wait_fields(kind, "a"))
        log.add(WaitStarted, deadline_at=TimestampMs(20), **wait_fields(kind, "b"))
    log.add(WaitStarted, deadline_at=TimestampMs(20), **wait_fields("sleep", "nap"))
    assert len(log.memory.waits) == 7
    log.retry()
    assert log.memory.waits == {}


def test_events_given_in_any_attempt_are_given_to_nobody_else_and_ends_and_wakes_are(log: Log) -> None:
    log.add(Received, seq=1, **wait_fields("event", "paid"))
    log.add(Received, seq=2, **wait_fields("child", CHILD))
    log.add(Received, seq=3, **wait_fields("sleep", "nap"))
    log.retry()
    log.add(Received, seq=4, **wait_fields("event", "paid", 1))
    assert log.memory.received == {1, 4}


def called(key: str, *, error: CallError | None = None) -> dict[str, Any]:
    return {"kind": "child", "key": key, "ordinal": 0, "run_id": CHILD, "error": error}


def test_in_another_attempt_children_are_kept_and_refusals_are_not_and_nothing_is_required(log: Log) -> None:
    created = log.add(CallEnded, **called("created"))
    log.add(CallEnded, **called("refused", error=CallError(code="not_found", detail="d")))
    before = {key: call.is_required for (key, _), call in log.memory.calls.items()}
    log.retry()
    after = {key: (call.outcome, call.is_required) for (key, _), call in log.memory.calls.items()}
    assert (before, after) == ({"created": True, "refused": True}, {"created": (created, False)})


def test_only_a_retry_begins_another_attempt(log: Log) -> None:
    log.add(WaitStarted, deadline_at=TimestampMs(20), **wait_fields("timer", "a"))
    log.start("ship")
    log.add(TaskFailed, task_id="ship", attempt=1, error=ERROR)
    log.enter(Queued(reason="wakeup"), Running(), Queued(reason="recovery"), Running(), Queued(reason="yield"), Running())
    assert (log.task("ship").is_required, log.wait(("timer", "a", 0))) == (True, RecordedWait(TimestampMs(20)))
    assert log.memory.started_at == 3


@pytest.mark.parametrize("record", ["task", "call", "wait"])
def test_a_run_that_started_called_or_waited_has_worked(log: Log, record: str) -> None:
    match record:
        case "task":
            log.start("ship")
        case "call":
            log.add(CallEnded, **called("created"))
        case "wait":
            log.add(WaitStarted, deadline_at=TimestampMs(20), **wait_fields("timer", "a"))
    assert log.memory.has_worked


def test_the_first_record_of_an_unknown_type_is_remembered(log: Log) -> None:
    first = log.add(UnknownRecord, type="news")
    log.add(UnknownRecord, type="newer")
    assert log.memory.unknown == first
