"""Starting by reference: one run for one reference, whoever asks, how often, and at what moment."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import pytest

from aiki_push.adapters.storage import keys
from aiki_push.adapters.storage.table import Delete, Table
from aiki_push.domain.errors import NotFound, ReferenceConflict, StorageUnavailable
from aiki_push.domain.retry import fixed
from aiki_push.domain.run import RunOptions
from aiki_push.domain.values import Json, RunId, TimestampMs
from aiki_push.ports.api.runs import GetRun, RunView, StartRun
from aiki_push.testing import CountingTable, FakeClock, FaultyTable
from tests.integration.owners import FINISH, Owner, claim
from tests.integration.test_races import side_by_side
from tests.local_system import NAMESPACE, LocalSystem

EVER = TimestampMs(2**50)


@pytest.fixture
def system(table: Table) -> LocalSystem:
    return LocalSystem(table, clock=FakeClock())


def request(value: Json = 1, **fields: Any) -> StartRun:
    asked = {"workflow": "w", "version": "1", "input": value, "reference": {"id": "order 7"}}
    return StartRun.model_validate({**asked, **fields})


def start(system: LocalSystem, value: Json = 1, **fields: Any) -> RunView:
    return system.server.call(NAMESPACE, request(value, **fields))


def runs(system: LocalSystem) -> int:
    return len(system.store.due_runs(until=EVER, limit=1_000))


def test_a_second_start_with_the_same_input_gets_the_run_of_the_first(system: LocalSystem) -> None:
    first = start(system, {"a": 1, "b": [1.0]})
    assert first.reference == "order 7"
    assert start(system, {"b": [1], "a": 1}) == first
    assert start(system, {"a": 1, "b": [1]}, options={"pool": "eu", "priority": 0, "delay_ms": 5}) == first
    assert runs(system) == 1


def test_the_run_of_the_first_start_is_answered_in_whatever_state_it_is(system: LocalSystem) -> None:
    first = start(system)
    owner = Owner(system, claim(system, first.id))
    assert (start(system).id, start(system).state.status) == (first.id, "running")
    owner.send(owner.checkpoint(end=FINISH))
    ended = start(system)
    assert (ended.id, ended.state.status, ended.output) == (first.id, "completed", FINISH.output)


def test_another_input_is_refused_and_changes_nothing(system: LocalSystem) -> None:
    first = start(system)
    before = system.run(first.id)
    for value in (2, None, "1", True):
        with pytest.raises(ReferenceConflict) as refused:
            start(system, value)
        assert refused.value.fields == {"run_id": first.id}
    with pytest.raises(ReferenceConflict):
        system.server.call(NAMESPACE, StartRun.model_validate({"workflow": "w", "version": "1", "reference": {"id": "order 7"}}))
    assert (system.run(first.id), runs(system)) == (before, 1)


def test_another_input_gets_the_existing_run_by_policy(system: LocalSystem) -> None:
    first = start(system)
    reference = {"id": "order 7", "conflict_policy": "return_existing"}
    assert start(system, 2, reference=reference) == start(system, reference=reference) == first
    assert runs(system) == 1


def test_a_reference_counts_within_one_version_of_one_workflow_in_one_namespace(system: LocalSystem) -> None:
    ids = {start(system, **fields).id for fields in ({}, {"version": "2"}, {"workflow": "v"}, {"reference": {"id": "order 8"}})}
    ids.add(system.server.call("another", request()).id)
    assert len(ids) == 5


def test_a_start_without_a_reference_is_always_a_run_of_its_own(system: LocalSystem) -> None:
    assert start(system, reference=None).id != start(system, reference=None).id
    assert start(system, reference=None).reference is None


def test_a_repeated_request_is_the_same_start(system: LocalSystem) -> None:
    run_id = RunId("01JZZZZZZZZZZZZZZZZZZZZZZZ")
    first = start(system, run_id=run_id)
    assert first.id == run_id
    assert start(system, run_id=run_id) == first
    other = RunId("01JZZZZZZZZZZZZZZZZZZZZZZY")
    assert start(system, run_id=other) == first
    with pytest.raises(NotFound):
        system.server.call(NAMESPACE, GetRun(run_id=other))


@pytest.mark.parametrize("reference", [None, {"id": "order 8"}], ids=["none", "another"])
def test_the_id_of_a_run_with_another_reference_is_in_use(system: LocalSystem, reference: dict[str, str] | None) -> None:
    first = start(system)
    with pytest.raises(ReferenceConflict, match="run id"):
        start(system, run_id=first.id, reference=reference)
    assert system.store.reference(NAMESPACE, "w", "1", "order 8") is None


def test_an_answer_that_is_lost_on_the_way_from_the_table_leaves_one_run(table: Table) -> None:
    faulty = FaultyTable(table)
    system = LocalSystem(faulty, clock=FakeClock())
    failures = iter([StorageUnavailable("lost"), StorageUnavailable("lost again")])

    def lose(_: object) -> None:
        if (failure := next(failures, None)) is not None:
            raise failure

    faulty.after_write = lose
    first = start(system)
    assert (start(system), runs(system)) == (first, 1)


def test_a_reference_to_a_run_that_is_gone_is_free(system: LocalSystem) -> None:
    gone = start(system)
    system.table.write([Delete(keys.header(NAMESPACE, gone.id))], token="t")
    again = start(system, "another input")
    assert again.id != gone.id
    assert start(system, "another input") == again
    named = system.store.reference(NAMESPACE, "w", "1", "order 7")
    assert named is not None
    assert named.run_id == again.id


@pytest.mark.parametrize("policy", ["error", "return_existing"])
@pytest.mark.parametrize("value", [1, 2], ids=["same input", "another input"])
def test_a_reference_that_is_taken_between_the_look_and_the_start_counts(table: Table, value: int, policy: str) -> None:
    faulty = FaultyTable(table)
    slow, fast = LocalSystem(faulty, clock=FakeClock()), LocalSystem(table, clock=FakeClock())
    winners: list[RunView] = []

    def overtake(_: object) -> None:
        if not winners:
            winners.append(start(fast))

    faulty.before_write = overtake
    reference = {"id": "order 7", "conflict_policy": policy}
    if (value, policy) == (2, "error"):
        with pytest.raises(ReferenceConflict):
            start(slow, value, reference=reference)
    else:
        assert start(slow, value, reference=reference) == winners[0]
    assert (len(winners), runs(fast)) == (1, 1)


STARTERS = 50


@pytest.mark.timeout(180)
@pytest.mark.parametrize("is_reused", [False, True], ids=["never used", "of a run that is gone"])
def test_of_fifty_starts_at_once_with_one_reference_one_makes_the_run(table: Table, is_reused: bool) -> None:
    system = LocalSystem(table)
    if is_reused:
        system.table.write([Delete(keys.header(NAMESPACE, start(system).id))], token="t")
    with ThreadPoolExecutor(STARTERS) as threads:
        answers = side_by_side(threads, *[partial(start, system)] * STARTERS)
    assert len({answer.id for answer in answers}) == 1
    assert runs(system) == 1


@pytest.mark.timeout(180)
def test_of_fifty_starts_at_once_with_different_inputs_one_makes_the_run_and_the_others_are_refused(table: Table) -> None:
    system = LocalSystem(table)

    def attempt(value: int) -> Callable[[], RunId | None]:
        def begin() -> RunId | None:
            try:
                return start(system, value).id
            except ReferenceConflict:
                return None

        return begin

    with ThreadPoolExecutor(STARTERS) as threads:
        answers = side_by_side(threads, *map(attempt, range(STARTERS)))
    assert len([answer for answer in answers if answer is not None]) == 1
    assert runs(system) == 1


def test_a_repeated_start_writes_nothing_even_with_a_large_input(table: Table) -> None:
    counting = CountingTable(table)
    system = LocalSystem(counting, clock=FakeClock())
    text = "x" * 40_000
    first = start(system, text)
    counting.reset()
    assert start(system, text) == first
    counts = counting.reset()
    assert (counts.single_writes, counts.transactions) == (0, 0)


def test_options_are_kept_with_the_run_and_told_to_its_executor(system: LocalSystem) -> None:
    retry = fixed(max_attempts=3, delay_ms=500, non_retryable=("Declined",))
    view = start(system, options={"pool": "eu", "priority": 2, "retry": retry.model_dump(mode="json")})
    options = RunOptions(pool="eu", priority=2, retry=retry)
    assert (view.options, system.run(view.id).options, claim(system, view.id).run.options) == (options,) * 3
