"""Calls on other runs in groups, each of which one transaction can hold."""

from itertools import chain
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aiki_push.domain.values import Json, RunId
from aiki_push.ports.api.calls import MAX_CHILD_STARTS, MAX_OPERATIONS, Call, ControlRun, SendEventTo, StartChild
from aiki_push.ports.api.runs import StartReference
from aiki_push.sdk.replay.journal import MAX_CALLS_JSON_BYTES, split_calls
from aiki_push.server.call_checks import check_calls


def run_id(number: int) -> RunId:
    return RunId(f"01{number:024}")


def child(number: int, *, reference: str | None = None, value: Json = None, version: str = "1.0.0") -> StartChild:
    return StartChild(
        key=f"child{number}",
        ordinal=0,
        run_id=run_id(number),
        workflow="shipment",
        version=version,
        input=value,
        reference=None if reference is None else StartReference(id=reference),
    )


def pause(number: int) -> ControlRun:
    return ControlRun(kind="pause", key=f"pause{number}", ordinal=0, run_id=run_id(number), operation_id=f"operation{number}")


def telling(number: int) -> SendEventTo:
    return SendEventTo(key=f"event{number}", ordinal=0, run_id=run_id(number), event="paid", reference=f"r{number}")


def lengths(calls: list[Any]) -> list[int]:
    groups = split_calls(calls)
    assert list(chain.from_iterable(groups)) == calls
    return [len(group) for group in groups]


def test_no_call_is_no_group() -> None:
    assert split_calls([]) == []


@pytest.mark.parametrize(("make", "limit"), [(child, MAX_CHILD_STARTS), (pause, MAX_OPERATIONS), (telling, MAX_OPERATIONS)])
def test_a_group_holds_as_many_calls_as_a_transaction_may(make: Any, limit: int) -> None:
    assert lengths([make(number) for number in range(limit)]) == [limit]
    assert lengths([make(number) for number in range(2 * limit + 1)]) == [limit, limit, 1]


def test_children_may_fill_up_a_group_of_other_calls_and_not_the_other_way_round() -> None:
    children = [child(number) for number in range(MAX_OPERATIONS)]
    assert lengths([*children, pause(98)]) == [MAX_OPERATIONS, 1]
    pauses = [pause(number) for number in range(MAX_OPERATIONS)]
    more = MAX_CHILD_STARTS - MAX_OPERATIONS
    assert lengths([*pauses, *(child(90 + number) for number in range(more + 1))]) == [MAX_CHILD_STARTS, 1]


def test_no_two_calls_of_a_group_are_about_one_run() -> None:
    assert lengths([telling(1), pause(2), telling(2), pause(1), pause(3)]) == [2, 3]
    assert lengths([pause(1)] * 3) == [1, 1, 1]


def test_no_two_starts_of_a_group_have_one_reference_of_one_version() -> None:
    assert lengths([child(1, reference="a"), child(2, reference="b"), child(3, reference="a"), child(4, reference="b")]) == [2, 2]
    assert lengths([child(1, reference="a"), child(2, reference="a", version="2.0.0"), child(3)]) == [3]


def test_a_group_keeps_to_the_size_of_a_request_and_a_larger_call_goes_alone() -> None:
    half, whole = "a" * (MAX_CALLS_JSON_BYTES // 2), "a" * MAX_CALLS_JSON_BYTES
    assert lengths([child(number, value=half) for number in range(3)]) == [1, 1, 1]
    assert lengths([child(number, value=half[1_000:]) for number in range(5)]) == [2, 2, 1]
    assert lengths([child(1), child(2, value=whole), child(3)]) == [1, 1, 1]


some_calls = st.lists(
    st.one_of(
        st.integers(0, 30).map(child),
        st.builds(child, st.integers(0, 30), reference=st.sampled_from("abc")),
        st.integers(0, 30).map(pause),
        st.integers(0, 30).map(telling),
    ),
    max_size=80,
)


@given(some_calls)
def test_the_server_takes_every_group_and_all_calls_are_in_them_in_order(calls: list[Call]) -> None:
    groups = split_calls(calls)
    assert list(chain.from_iterable(groups)) == calls
    for group in groups:
        assert group
        check_calls(tuple(group))
