"""Calls on other runs that no checkpoint can carry out: the field is named, nothing is written, and the owner can go on."""

from collections.abc import Sequence
from typing import Any

import pytest

from aiki_push.adapters.storage.memory.table import MemoryTable
from aiki_push.adapters.storage.table import Table
from aiki_push.adapters.transport.http_messages import HttpRequest
from aiki_push.adapters.transport.wire import Wire
from aiki_push.domain.canonical_json import parse_json
from aiki_push.domain.errors import InvalidRequest, PayloadTooLarge
from aiki_push.domain.log_records import CallEnded, KnownRecord, Received, Transition
from aiki_push.domain.run_states import Running
from aiki_push.domain.values import MAX_INLINE_BYTES, MAX_VALUE_BYTES, Json, TimestampMs
from aiki_push.ports.api.calls import MAX_CHILD_STARTS, MAX_OPERATIONS, Call
from aiki_push.ports.api.checkpoints import Appended, HandBack, SegmentEnd, Yield
from aiki_push.ports.api.runs import StartReference, StartRun
from aiki_push.testing import CountingTable, Counts, FakeClock
from tests.integration.bad_commands import BAD_COMMANDS
from tests.integration.checkpoint_calls import calling, child, control, event
from tests.integration.owners import FINISH, PARK, Owner, claim, start, started
from tests.integration.waiting_runs import numbered
from tests.local_system import NAMESPACE, LocalSystem
from tests.unit.adapters.transport.sample_values import RUN_ID


@pytest.fixture
def counting(table: Table) -> CountingTable:
    return CountingTable(table)


@pytest.fixture
def system(counting: CountingTable) -> LocalSystem:
    return LocalSystem(counting, clock=FakeClock())


def doubled(index: int) -> dict[str, str]:
    message = "an earlier call of this checkpoint has the same run or reference; send this one in a later checkpoint"
    return {f"calls[{index}]": message}


DEEPEST = "calls[0].input" + "[0]" * 100


def nested(levels: int) -> Json:
    return [nested(levels - 1)] if levels else None


TOGETHER: dict[str, tuple[Sequence[Call], dict[str, str]]] = {
    "two events for one run": ([event(numbered(1)), event(numbered(1), event="refunded")], doubled(1)),
    "an event and a cancel for one run": ([child(1), event(numbered(2)), control("cancel", numbered(2))], doubled(2)),
    "two children with one id": ([child(1), child(2), child(1, input=1)], doubled(2)),
    "two children with one reference": ([child(1, reference="order 1"), child(2, reference="order 1")], doubled(1)),
    "a child and an event for it": ([child(1), event(numbered(1))], doubled(1)),
    "too many children": (
        [child(number) for number in range(MAX_CHILD_STARTS + 1)],
        {"calls": "more than 24 calls; send them in parts"},
    ),
    "too many of both": (
        [*map(child, range(MAX_CHILD_STARTS)), event(numbered(100))],
        {"calls": "more than 24 calls; send them in parts"},
    ),
    "too many events": (
        [event(numbered(number)) for number in range(MAX_OPERATIONS + 1)],
        {"calls": "more than 20 calls that start no child; send them in parts"},
    ),
    "data that is no number": ([child(1), event(numbered(2), data=float("nan"))], {"calls[1].data": "calls[1].data is nan"}),
    "data with a key that is no text": (
        [event(numbered(2), data={1: "a"})],
        {"calls[0].data": "calls[0].data has a key of type int: keys must be str"},
    ),
    "data of another type": (
        [event(numbered(2), data={"when": [(1, 2)]})],
        {"calls[0].data": "calls[0].data.when[0] is tuple: use None, bool, int, float, str, list or dict"},
    ),
    "an input with an infinity": (
        [child(1), child(2, input=[float("inf")]), child(3, input=float("-inf"))],
        {"calls[1].input": "calls[1].input[0] is inf", "calls[2].input": "calls[2].input is -inf"},
    ),
    "an input that a double cannot hold": (
        [child(1, input={"a": 2**53 + 1})],
        {"calls[0].input": "calls[0].input.a is an integer beyond ±2^53: use str"},
    ),
    "an input that is too deep": (
        [child(1, input=nested(101))],
        {"calls[0].input": f"{DEEPEST[:100]}…{DEEPEST[-100:]} is inside more than 100 lists and dicts, or in itself"},
    ),
}


def faults(refused: InvalidRequest) -> dict[str, str]:
    errors: Any = refused.fields["errors"]
    return {error["field"]: error["message"] for error in errors}


def check_untouched(counting: CountingTable, owner: Owner) -> None:
    """No write was even tried, and the owner's next append goes through with the token that it has."""
    counts = counting.reset()
    assert (counts.single_writes, counts.transactions) == (0, 0)
    assert isinstance(owner.append(started("next")), Appended)


@pytest.mark.parametrize("is_first", [True, False], ids=["first append", "later append"])
@pytest.mark.parametrize(("calls", "expected"), TOGETHER.values(), ids=TOGETHER)
def test_calls_that_cannot_be_carried_out_together_are_refused_by_their_place(
    system: LocalSystem, counting: CountingTable, calls: Sequence[Call], expected: dict[str, str], is_first: bool
) -> None:
    owner = Owner(system, claim(system, start(system)))
    if not is_first:
        owner.append(started("first"))
    counting.reset()
    with pytest.raises(InvalidRequest) as refused:
        owner.send(calling(owner, *calls, records=(started("a"),)))
    assert faults(refused.value) == expected
    check_untouched(counting, owner)


@pytest.mark.parametrize(
    ("calls", "field"),
    [
        ([child(1, input="x" * MAX_VALUE_BYTES)], "calls[0].input"),
        (
            [child(1, input="x" * MAX_INLINE_BYTES), event(numbered(2), data={"text": "é" * (MAX_VALUE_BYTES // 2)})],
            "calls[1].data",
        ),
    ],
)
def test_a_value_over_the_limit_is_refused_by_its_place_and_the_others_are_not_stored_either(
    system: LocalSystem, counting: CountingTable, calls: Sequence[Call], field: str
) -> None:
    owner = Owner(system, claim(system, start(system)))
    counting.reset()
    with pytest.raises(PayloadTooLarge) as refused:
        owner.send(calling(owner, *calls))
    assert (refused.value.fields["field"], refused.value.fields["limit"]) == (field, MAX_VALUE_BYTES)
    check_untouched(counting, owner)


@pytest.mark.parametrize("end", [FINISH, PARK, Yield(), HandBack()], ids=["finish", "park", "yield", "hand back"])
def test_calls_end_no_segment(system: LocalSystem, counting: CountingTable, end: SegmentEnd | HandBack) -> None:
    owner = Owner(system, claim(system, start(system)))
    counting.reset()
    with pytest.raises(InvalidRequest) as refused:
        owner.send(owner.checkpoint(end=end).model_copy(update={"calls": (child(1),)}))
    assert faults(refused.value) == {"calls": "calls on other runs end no segment; send them in a checkpoint of their own"}
    check_untouched(counting, owner)


AT = TimestampMs(1)
ENDED = CallEnded(at=AT, kind="child", key="child", ordinal=0, run_id=numbered(1), result="created")
ENTERED = Transition(at=AT, state=Running(), revision=9, attempts=1)
RECEIVED = Received(at=AT, seq=1, kind="event", key="paid", ordinal=0)


@pytest.mark.parametrize("end", [None, FINISH, HandBack()], ids=["append", "finish", "hand back"])
@pytest.mark.parametrize(("record", "name"), [(ENDED, "call_ended"), (ENTERED, "transition")])
def test_an_executor_writes_no_outcome_of_a_call_and_no_transition(
    system: LocalSystem, counting: CountingTable, record: KnownRecord, name: str, end: SegmentEnd | HandBack | None
) -> None:
    owner = Owner(system, claim(system, start(system)))
    counting.reset()
    with pytest.raises(InvalidRequest) as refused:
        owner.send(owner.checkpoint(RECEIVED, record, end=end))
    assert faults(refused.value) == {"records[1]": f"{name} records are the server's to write"}
    check_untouched(counting, owner)


def test_a_reference_to_a_run_that_an_earlier_call_is_about_is_refused_by_its_place(
    system: LocalSystem, counting: CountingTable
) -> None:
    request = StartRun(workflow="w", version="1", input={"a": 1}, reference=StartReference(id="order 1"))
    holder = system.server.call(NAMESPACE, request).id
    owner = Owner(system, claim(system, start(system)))
    counting.reset()
    with pytest.raises(InvalidRequest) as refused:
        owner.send(calling(owner, event(holder), child(1, reference="order 1")))
    assert faults(refused.value) == doubled(1)
    check_untouched(counting, owner)


@pytest.mark.parametrize(("request_", "expected"), BAD_COMMANDS.values(), ids=BAD_COMMANDS)
def test_a_wrong_command_is_refused_before_anything_is_read_or_written(request_: HttpRequest, expected: dict[str, str]) -> None:
    counting = CountingTable(MemoryTable())
    system = LocalSystem(counting, clock=FakeClock())
    system.server.call(NAMESPACE, StartRun(run_id=RUN_ID, workflow="w", version="1"))
    counting.reset()
    answer = Wire(system.server, namespace=NAMESPACE, entropy=system.entropy).handle(request_)
    problem: Any = parse_json(answer.body)
    assert (answer.status, problem["code"], counting.reset()) == (400, "invalid_request", Counts())
    assert {fault["field"]: fault["message"] for fault in problem["errors"]} == expected
