"""What does not fit into one checkpoint goes into several, in its order."""

import pytest

from aiki_push.domain.log_records import TaskCompleted
from aiki_push.domain.values import Inline, RunId, TimestampMs
from aiki_push.ports.api.calls import Call, ControlRun, SendEventTo, StartChild
from aiki_push.ports.api.checkpoints import MAX_CHECKPOINT_BYTES
from aiki_push.ports.api.runs import StartReference
from aiki_push.sdk.replay.journal import MAX_CALLS_JSON_BYTES, split, split_calls


def numbered(number: int) -> RunId:
    return RunId(f"{number:026}")


def child(number: int, reference: str | None = None, text: str | None = None) -> StartChild:
    named = None if reference is None else StartReference(id=reference)
    return StartChild(key="c", ordinal=number, run_id=numbered(number), workflow="w", version="1", reference=named, input=text)


def event(number: int, target: int) -> SendEventTo:
    return SendEventTo(key="e", ordinal=number, run_id=numbered(target), event="go", reference=f"event {number}")


def cancel(target: int) -> ControlRun:
    return ControlRun(kind="cancel", key="x", ordinal=0, run_id=numbered(target), operation_id="cancel")


def completed(number: int, text: str) -> TaskCompleted:
    return TaskCompleted(at=TimestampMs(0), task_id=str(number), attempt=1, output=Inline(value=text))


@pytest.mark.parametrize(
    ("calls", "sizes"),
    [
        pytest.param([], [], id="none"),
        pytest.param([child(n) for n in range(50)], [24, 24, 2], id="24 children"),
        pytest.param([event(n, n) for n in range(41)], [20, 20, 1], id="20 others"),
        pytest.param([event(n, 7) for n in range(3)], [1, 1, 1], id="one target"),
        pytest.param([event(0, 1), event(1, 2), event(2, 1), event(3, 2)], [2, 2], id="two targets in turn"),
        pytest.param([event(0, 1), cancel(1), cancel(2)], [1, 2], id="one target in two ways"),
        pytest.param([child(1, "a"), child(2, "b"), child(3, "a")], [2, 1], id="one reference"),
        pytest.param([child(1), child(2, "a"), event(0, 3), child(4)], [2, 2], id="a reference and something said to a run"),
        pytest.param([event(0, 3), child(4), child(2, "a")], [2, 1], id="something said to a run and a reference"),
        pytest.param([event(0, 3), child(4), cancel(5)], [3], id="no reference"),
    ],
)
def test_calls_that_no_transaction_can_hold_together_are_carried_out_one_after_the_other(
    calls: list[Call], sizes: list[int]
) -> None:
    groups = split_calls(calls)
    assert [len(group) for group in groups] == sizes
    assert [call for group in groups for call in group] == calls


@pytest.mark.parametrize("letter", ["x", "é", "字", "🦊"])
def test_calls_are_measured_in_bytes(letter: str) -> None:
    calls = [child(n, text=letter * (250_000 // len(letter.encode()))) for n in range(8)]
    groups = split_calls(calls)
    assert [len(group) for group in groups] == [4, 4]
    assert all(sum(len(call.model_dump_json().encode()) for call in group) <= MAX_CALLS_JSON_BYTES for group in groups)


@pytest.mark.parametrize("letter", ["x", "é", "字", "🦊"])
def test_records_are_measured_in_bytes(letter: str) -> None:
    records = [completed(n, letter * (120_000 // len(letter.encode()))) for n in range(5)]
    parts = split(records)
    assert [len(part) for part in parts] == [2, 2, 1]
    assert [record for part in parts for record in part] == records
    assert all(sum(len(record.model_dump_json().encode()) for record in part) <= MAX_CHECKPOINT_BYTES for part in parts)
