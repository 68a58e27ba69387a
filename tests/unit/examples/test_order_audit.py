"""The example's comparison of its ledger with the histories of runs."""

from collections.abc import Sequence

import pytest

from aiki_push.domain.log_records import (
    AnyRecord,
    RecordedError,
    TaskBackingOff,
    TaskCompleted,
    TaskFailed,
    TaskStarted,
    Transition,
)
from aiki_push.domain.run_states import Queued, Running
from aiki_push.domain.values import Inline, TimestampMs
from examples.order_processing.audit import Audit, audit
from examples.order_processing.ledger import End, Execution

ERROR = RecordedError(name="ServiceBusy", message="busy")


def at(time: int) -> TimestampMs:
    return TimestampMs(time)


def started(time: int, *, attempt: int = 1, task: str = "t1") -> AnyRecord:
    return TaskStarted(at=at(time), task_id=task, name="charge-payment", input_hash="h", ordinal=1, attempt=attempt)


def completed(time: int, *, attempt: int = 1, task: str = "t1") -> AnyRecord:
    return TaskCompleted(at=at(time), task_id=task, attempt=attempt, output=Inline(value=None))


def backing_off(time: int) -> AnyRecord:
    return TaskBackingOff(at=at(time), task_id="t1", attempt=1, error=ERROR, next_attempt_at=at(time + 1))


def recovered(time: int) -> tuple[AnyRecord, AnyRecord]:
    queued = Transition(at=at(time), origin="running", state=Queued(reason="recovery"), revision=2, attempts=1)
    return queued, Transition(at=at(time), origin="queued", state=Running(), revision=3, attempts=1)


def execution(
    number: int, began: int, ended: int | None, *, end: End | None = "finished", attempt: int = 1, key: str = "run-t1"
) -> Execution:
    return Execution(
        id=number,
        order_id="order-001",
        run_id="run",
        task="charge-payment",
        attempt=attempt,
        idempotency_key=key,
        pid=number,
        started_at=began,
        ended_at=ended,
        end=end if ended is not None else None,
    )


def found(records: Sequence[AnyRecord], *executions: Execution) -> Audit:
    return audit({"run": records}, executions)


def test_a_task_that_completed_with_one_effect_is_well() -> None:
    assert found([started(1), completed(5)], execution(1, 2, 4)) == Audit(effects=1, interrupted=(), faults=())


def test_a_failed_attempt_is_neither_interrupted_nor_a_fault() -> None:
    records = [started(1), backing_off(4), started(5, attempt=2), completed(9, attempt=2)]
    first, second = execution(1, 2, 3, end="failed"), execution(2, 6, 8, attempt=2)
    assert found(records, first, second) == Audit(effects=1, interrupted=(), faults=())


def test_a_task_that_failed_for_good_needs_no_effect() -> None:
    records = [started(1), TaskFailed(at=at(4), task_id="t1", attempt=1, error=ERROR)]
    assert found(records, execution(1, 2, 3, end="failed")) == Audit(effects=0, interrupted=(), faults=())


def test_an_execution_that_was_killed_is_interrupted() -> None:
    killed, repeated = execution(1, 2, None), execution(2, 12, 14)
    records = [started(1), *recovered(10), started(11), completed(15)]
    assert found(records, killed, repeated) == Audit(effects=1, interrupted=(killed,), faults=())


def test_an_execution_whose_result_was_lost_is_interrupted_though_it_finished() -> None:
    lost, repeated = execution(1, 2, 4), execution(2, 12, 14)
    records = [started(1), *recovered(10), started(11), completed(15)]
    assert found(records, lost, repeated) == Audit(effects=1, interrupted=(lost,), faults=())


def test_a_zombie_that_finishes_after_the_repetition_is_interrupted() -> None:
    zombie, repeated = execution(1, 2, 40), execution(2, 12, 14)
    records = [started(1), *recovered(10), started(11), completed(15)]
    assert found(records, zombie, repeated) == Audit(effects=1, interrupted=(zombie,), faults=())


def test_a_zombie_that_only_begins_after_the_repetition_is_interrupted() -> None:
    repeated, zombie = execution(1, 12, 14), execution(2, 30, 40)
    records = [started(1), *recovered(10), started(11), completed(15)]
    assert found(records, repeated, zombie) == Audit(effects=1, interrupted=(zombie,), faults=())


def test_a_run_that_has_not_ended_has_an_execution_that_does_not_count_yet() -> None:
    running = execution(1, 2, None)
    assert found([started(1)], running) == Audit(effects=0, interrupted=(running,), faults=())


@pytest.mark.parametrize(
    "executions", [(), (execution(1, 2, None),), (execution(1, 2, 3, end="failed"),)], ids=["none", "cut off", "failed"]
)
def test_a_completed_task_without_an_effect_is_a_fault(executions: tuple[Execution, ...]) -> None:
    assert found([started(1), completed(5)], *executions).faults == (
        "charge-payment run-t1 completed, and its effect is not in the ledger",
    )


def test_the_effect_of_another_attempt_does_not_count() -> None:
    records = [started(1), backing_off(4), started(5, attempt=2), completed(9, attempt=2)]
    assert found(records, execution(1, 2, 3), execution(2, 6, None, attempt=2)).faults == (
        "charge-payment run-t1 completed, and its effect is not in the ledger",
    )


def test_an_effect_that_happened_twice_without_a_crash_is_a_fault() -> None:
    assert found([started(1), completed(9)], execution(1, 2, 4), execution(2, 5, 7)).faults == (
        "charge-payment run-t1 was executed 2 times in attempt 1, which was started 1 times",
    )


@pytest.mark.parametrize(
    "records",
    [
        [started(1), started(3), completed(9)],
        [started(1), completed(3), *recovered(4), started(5), completed(9)],
    ],
    ids=["while it runs", "after it completed"],
)
def test_a_start_that_nothing_made_necessary_is_a_fault(records: Sequence[AnyRecord]) -> None:
    assert found(records, execution(1, 2, 3), execution(2, 6, 7)).faults == (
        "charge-payment run-t1 was started again, and nothing had cut it off",
    )


def test_an_effect_that_no_history_knows_is_a_fault() -> None:
    assert found([], execution(1, 2, 4)).faults == ("charge-payment run-t1 was executed, and no history says so",)


def test_calls_are_told_apart() -> None:
    records = [started(1), started(1, task="t2"), completed(4), *recovered(10), started(11, task="t2"), completed(15, task="t2")]
    first, cut_off, second = execution(1, 2, 3), execution(2, 2, None, key="run-t2"), execution(3, 12, 13, key="run-t2")
    assert found(records, first, cut_off, second) == Audit(effects=2, interrupted=(cut_off,), faults=())
