"""What must be true in the end, broken; and how an ending is described."""

from typing import Any

import pytest

from aiki_push.domain.inbox import Message
from aiki_push.domain.log_records import Received
from aiki_push.domain.run_states import SelfCause
from aiki_push.domain.values import Inline, Json, RunId, StoredValue, TimestampMs
from aiki_push.ports.api.checkpoints import Complete, Fail
from tests.integration.owners import Owner, claim, completed, start, started
from tests.integration.waiting_runs import BOOM, parked_on, run_in, wait
from tests.local_system import NAMESPACE, LocalSystem
from tests.simulation.endings import FAILED, Pattern, fits, joined, texts_in
from tests.simulation.final_rules import faults_of_the_end, is_quiet
from tests.simulation.stored import Stored

AT = TimestampMs(1)


def stored(system: LocalSystem, run_id: RunId, workflow: str = "kid", **fields: Any) -> Stored:
    """A run as it is stored, as if it were one of the simulation's."""
    run = system.run(run_id).model_copy(update={"workflow": workflow, **fields})
    return Stored(run, system.store.log(NAMESPACE, run_id, after=-1, max_bytes=2**31).slots)


def ended(system: LocalSystem, output: Json, *results: str) -> RunId:
    """A run that completed after tasks with these results."""
    owner = Owner(system, claim(system, start(system)))
    owner.append(*(started(result) for result in results))
    records = [completed(result) for result in results]
    owner.send(owner.checkpoint(*records, end=Complete(output=Inline(value=output))))
    return owner.claimed.run.id


def content(_: RunId, value: StoredValue | None) -> Json:
    return value.value if isinstance(value, Inline) else None


def faults(*runs: Stored) -> list[str]:
    return list(faults_of_the_end({one.run.id: one for one in runs}, content))


@pytest.fixture
def system() -> LocalSystem:
    return LocalSystem()


def test_a_run_may_end_as_its_workflow_says(system: LocalSystem) -> None:
    assert faults(stored(system, ended(system, ["a#1"], "a#1"))) == []


@pytest.mark.parametrize(
    ("output", "fault"),
    [
        (["z"], "its output is ['z']"),
        (["a", "b"], "its output is ['a', 'b']"),
        (["a#2"], "its output has what it was never given: {'a#2'}"),
    ],
    ids=["another output", "a longer one", "a result that is not recorded"],
)
def test_another_output_is_seen(system: LocalSystem, output: Json, fault: str) -> None:
    assert [one.endswith(fault) for one in faults(stored(system, ended(system, output, "a#1")))] == [True]


def test_an_output_may_have_what_events_brought(system: LocalSystem) -> None:
    run = stored(system, ended(system, ["a#event"], "a#1"))
    slots = (*run.slots[:-1], run.slots[-1].model_copy(update={"records": (*run.slots[-1].records, _receipt())}))
    event = Message(seq=1, at=AT, kind="event", key="e", data=Inline(value="a#event"))
    assert faults(Stored(run.run, slots, (event,))) == []


def _receipt() -> Received:
    return Received(at=AT, seq=1, kind="event", key="e", ordinal=0)


def test_a_run_that_fails_where_it_must_not_is_seen(system: LocalSystem) -> None:
    owner = Owner(system, claim(system, start(system)))
    owner.send(owner.checkpoint(end=Fail(cause=SelfCause(), error=BOOM)))
    run_id = owner.claimed.run.id
    assert [one.endswith(f"its output is {FAILED}") for one in faults(stored(system, run_id))] == [True]
    assert faults(stored(system, run_id, "failing")) == []


def test_two_runs_with_one_reference_are_seen(system: LocalSystem) -> None:
    runs = [stored(system, ended(system, ["a"]), reference="r") for _ in range(2)]
    assert faults(*runs) == ["2 runs have the reference ('kid', 'r')"]


def test_a_run_that_stands_still_is_seen(system: LocalSystem) -> None:
    assert [one.endswith("it stands still") for one in faults(stored(system, start(system)))] == [True]


@pytest.mark.parametrize("status", ["paused", "awaiting_event"])
def test_a_run_may_be_paused_or_wait_for_an_event_that_nobody_sends(system: LocalSystem, status: Any) -> None:
    run = stored(system, run_in(system, status))
    assert (is_quiet(run), faults(run)) == (True, [])


def test_a_run_that_waits_for_what_has_ended_is_seen(system: LocalSystem) -> None:
    child = stored(system, ended(system, ["a"]))
    waiting = stored(system, parked_on(system, wait("child", child.run.id)))
    assert [one.endswith(f"it waits for the end of {child.run.id}, which has ended") for one in faults(child, waiting)] == [True]


@pytest.mark.parametrize("status", ["queued", "running", "sleeping", "awaiting_retry", "scheduled"])
def test_what_goes_on_by_itself_is_not_quiet(system: LocalSystem, status: Any) -> None:
    assert not is_quiet(stored(system, run_in(system, status)))


@pytest.mark.parametrize(
    ("pattern", "output", "does_fit"),
    [
        (["a", ("b", "c")], ["a#1", "c#2"], True),
        (["a", ("b", "c")], ["a#1"], False),
        ((["a"], ["b", "c"]), ["b", "c"], True),
        (joined((["a"], []), (["b"],)), ["b"], True),
        (joined((["a"], []), (["b"],)), ["a"], False),
        (["a"], "a", False),
        (FAILED, FAILED, True),
    ],
)
def test_a_pattern_fits_what_it_describes(pattern: Pattern, output: Json, does_fit: bool) -> None:
    assert fits(pattern, output) is does_fit


def test_only_what_is_like_nothing_else_is_looked_for() -> None:
    assert list(texts_in(["a#1", ["plain", "b#2"], None])) == ["a#1", "b#2"]
