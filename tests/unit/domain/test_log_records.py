import json

import pytest
from pydantic import TypeAdapter, ValidationError

from aiki_push.domain.log_records import (
    OUTCOMES,
    AnyRecord,
    CallEnded,
    CallError,
    InputRecord,
    KnownRecord,
    LogSlot,
    Received,
    Record,
    RecordedError,
    StoredRecord,
    Tail,
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
from aiki_push.domain.run_states import RunState
from aiki_push.domain.values import Inline, Json, PayloadReference
from tests.unit.domain.run_examples import EXAMPLES, INPUT_HASH, RUN_ID, later

stored: TypeAdapter[AnyRecord] = TypeAdapter(StoredRecord)
received: TypeAdapter[KnownRecord] = TypeAdapter(Record)

AT = later(0)
DEEP = RecordedError(name="OrderFailed", message="no", stack="line 1", cause=RecordedError(name="KeyError", message="'sku'"))
LARGE = PayloadReference(run_id=RUN_ID, sha256="ab" * 32, size=40_000)

VALUES: list[Json] = [None, {"a": None}, [None], "é", 0, False]

RECORDS: list[KnownRecord] = [
    InputRecord(at=AT, value=None, hash=INPUT_HASH),
    InputRecord(at=AT, value=LARGE, hash=INPUT_HASH),
    Transition(at=AT, origin="running", state=EXAMPLES["failed"], revision=7, attempts=2, executor="w", error=DEEP),
    TaskStarted(at=AT, task_id="t", name="charge", input_hash=INPUT_HASH, ordinal=1, attempt=2, input=Inline(value=[1])),
    TaskCompleted(at=AT, task_id="t", attempt=2, output=LARGE),
    TaskFailed(at=AT, task_id="t", attempt=2, error=DEEP),
    TaskBackingOff(at=AT, task_id="t", attempt=1, error=DEEP, next_attempt_at=later(5)),
    TaskCancelled(at=AT, task_id="t"),
    WaitStarted(at=AT, kind="sleep", key="pause", ordinal=0, deadline_at=later(9)),
    WaitStarted(at=AT, kind="event", key="paid", ordinal=0),
    WaitEnded(at=AT, kind="sleep", key="pause", ordinal=0),
    Received(at=AT, seq=4, kind="event", key="paid", ordinal=1),
    Received(at=AT, seq=5, kind="child", key=RUN_ID, ordinal=0),
    Received(at=AT, seq=6, kind="sleep", key="pause", ordinal=0),
    CallEnded(at=AT, kind="child", key="child|ship", ordinal=0, run_id=RUN_ID, name="ship v1", result="existing"),
    CallEnded(at=AT, kind="pause", key="pause", ordinal=1, run_id=RUN_ID, result="requested"),
    CallEnded(at=AT, kind="wakeup", key="wakeup", ordinal=0, run_id=RUN_ID, error=CallError(code="not_found", detail="gone")),
    *(Transition(at=AT, state=state, revision=0, attempts=1) for state in EXAMPLES.values()),
    *(TaskCompleted(at=AT, task_id="t", attempt=1, output=Inline(value=value)) for value in VALUES),
]


@pytest.mark.parametrize("record", RECORDS)
def test_a_record_comes_back_from_storage_as_it_went_in(record: KnownRecord) -> None:
    slot = LogSlot(position=4, records=(record,), revision=2, at=AT, claim_id="c", checkpoint_id="k")
    assert LogSlot.model_validate_json(slot.model_dump_json()) == slot
    assert LogSlot.model_validate_json(slot.model_dump_json(exclude_none=True)) == slot


def test_every_kind_of_record_has_an_example() -> None:
    assert {type(record) for record in RECORDS} == set(KnownRecord.__args__)


@pytest.mark.parametrize("state", EXAMPLES.values())
def test_a_state_comes_back_with_the_fields_that_only_it_has(state: RunState) -> None:
    text = Transition(at=AT, state=state, revision=0, attempts=1).model_dump_json(exclude_none=True)
    back = stored.validate_json(text)
    assert isinstance(back, Transition)
    assert (type(back.state), back.state) == (type(state), state)


NEWER: dict[str, Json] = {"type": "archived", "at": AT, "seq": 4, "key": {"name": "paid"}}


def test_a_record_of_an_unknown_type_is_kept_whole() -> None:
    text = json.dumps({"position": 3, "records": [NEWER]})
    tail = Tail.model_validate_json(text)

    assert [type(record) for record in tail.records] == [UnknownRecord]
    assert json.loads(tail.model_dump_json(exclude_none=True))["records"] == [NEWER]


def test_a_record_of_a_known_type_that_lacks_what_this_release_needs_is_unknown_and_kept_whole() -> None:
    newer: dict[str, Json] = {"type": "transition", "at": AT, "revision": 9, "attempts": 1, "state": {"status": "archived"}}
    record = stored.validate_python(newer)

    assert isinstance(record, UnknownRecord)
    assert record.model_dump() == newer


def test_a_field_that_this_release_does_not_know_is_ignored_in_a_known_record() -> None:
    text = '{"type":"task_cancelled","at":1800000000000,"task_id":"t","by":"timeout"}'
    assert stored.validate_json(text) == TaskCancelled(at=AT, task_id="t")


@pytest.mark.parametrize(
    "text", ['{"at":1}', '{"type":"archived"}', '{"type":7,"at":1}', '{"type":"archived","at":"soon"}', "[]"]
)
def test_a_record_without_a_type_or_time_is_refused(text: str) -> None:
    with pytest.raises(ValidationError):
        stored.validate_json(text)


def test_a_record_of_an_unknown_type_is_refused_where_a_request_brings_it() -> None:
    with pytest.raises(ValidationError):
        received.validate_python(NEWER)


def test_a_record_is_never_changed() -> None:
    record, unknown = TaskCancelled(at=AT, task_id="t"), UnknownRecord(type="archived", at=AT)
    with pytest.raises(ValidationError):
        unknown.at = later(1)  # type: ignore[misc]  # that this is an error is what is tested
    with pytest.raises(ValidationError):
        record.task_id = "u"  # type: ignore[misc]  # that this is an error is what is tested


def test_outcomes_are_the_records_that_start_no_effect() -> None:
    assert set(OUTCOMES) == set(KnownRecord.__args__) - {InputRecord, Transition, TaskStarted, CallEnded}
