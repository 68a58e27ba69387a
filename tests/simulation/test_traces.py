"""What a workflow saw and whether it sees it again."""

import pytest

from aiki_push.domain.values import RunId
from tests.simulation.traces import Traces

RUN = RunId("0" * 26)


@pytest.fixture
def found() -> list[str]:
    return []


@pytest.fixture
def traces(found: list[str]) -> Traces:
    """Of a run whose first owner saw `a`, wrote it down, and saw `b`."""
    traces = Traces(found.append)
    traces.claimed(RUN, 1, "first")
    traces.saw("first", "a")
    traces.sends("first", "checkpoint 1")
    traces.saw("first", "b")
    traces.committed(RUN, 1, "checkpoint 1")
    traces.claimed(RUN, 1, "second")
    return traces


def test_what_was_written_is_seen_again_and_the_rest_may_differ(traces: Traces, found: list[str]) -> None:
    traces.saw("second", "a")
    traces.saw("second", "c")
    assert found == []


def test_another_thing_in_its_place_is_a_fault(traces: Traces, found: list[str]) -> None:
    traces.saw("second", "b")
    assert found == ["under claim second the workflow sees b where it saw a, after []"]


def test_an_owner_that_writes_before_it_saw_everything_again_is_a_fault(traces: Traces, found: list[str]) -> None:
    traces.sends("second", "checkpoint 2")
    traces.committed(RUN, 1, "checkpoint 2")
    assert found == ["claim second writes before its workflow saw ['a'] again"]


def test_an_event_that_the_log_says_was_received_and_that_nobody_saw_is_a_fault(traces: Traces, found: list[str]) -> None:
    traces.saw("second", "a")
    traces.sends("second", "checkpoint 2")
    traces.committed(RUN, 1, "checkpoint 2", ["a"])
    assert found == []
    traces.sends("second", "checkpoint 3")
    traces.committed(RUN, 1, "checkpoint 3", ["d"])
    assert found == ["claim second writes that its workflow received d, and it saw ['a']"]


def test_another_attempt_of_the_workflow_begins_anew(traces: Traces, found: list[str]) -> None:
    traces.claimed(RUN, 2, "third")
    traces.saw("third", "z")
    assert found == []


def test_a_checkpoint_that_is_sent_again_counts_from_the_first_time(traces: Traces) -> None:
    assert traces.sends("second", "checkpoint 2")
    assert not traces.sends("second", "checkpoint 2")
