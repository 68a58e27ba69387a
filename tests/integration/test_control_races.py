"""Races between those who control a run and its owner, 200 rounds each: whoever wins, the log and the header agree on it."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest

from aiki_push.domain.errors import IllegalTransition, RevisionConflict
from aiki_push.domain.log_records import Transition
from tests.integration.controls import cancel, owned, pause, transitions
from tests.integration.owners import FINISH, Owner, completed, started
from tests.integration.test_races import ROUNDS, side_by_side
from tests.local_system import LocalSystem

pytestmark = pytest.mark.timeout(180)

appended = pytest.mark.parametrize("is_first", [True, False], ids=["first write", "later write"])


def succeeds(action: Callable[[], object]) -> bool:
    """Whether `action` was carried out; being refused, because somebody else was faster, is the only other outcome."""
    try:
        action()
    except (RevisionConflict, IllegalTransition):
        return False
    return True


def new_owner(system: LocalSystem, is_first: bool) -> Owner:
    owner = owned(system)
    if not is_first:
        owner.append(started("a"))
    return owner


def check(system: LocalSystem, run_id: str, *expected: list[str]) -> None:
    """The run went through one of `expected`, after it was claimed; each transition is one revision, and the last is the header's."""
    run = system.run(run_id)
    records = [record for record in system.records(run_id) if isinstance(record, Transition)]
    assert [record.revision for record in records] == list(range(run.revision + 1))
    assert records[-1].state == run.state
    assert transitions(system, run_id)[2:] in expected


@appended
def test_of_a_cancel_and_a_finish_exactly_one_wins(is_first: bool) -> None:
    system = LocalSystem()
    with ThreadPoolExecutor(2) as threads:
        for _ in range(ROUNDS):
            owner = new_owner(system, is_first)
            run_id = owner.claimed.run.id
            finish = owner.checkpoint(completed("a"), end=FINISH)
            is_cancelled, is_finished = side_by_side(
                threads, partial(succeeds, partial(cancel, system, run_id)), partial(succeeds, partial(owner.send, finish))
            )
            assert is_cancelled != is_finished
            check(system, run_id, ["cancelled"] if is_cancelled else ["completed"])


@appended
def test_a_pause_wins_in_the_end_and_an_append_that_was_answered_is_in_the_log(is_first: bool) -> None:
    system = LocalSystem()
    with ThreadPoolExecutor(2) as threads:
        for _ in range(ROUNDS):
            owner = new_owner(system, is_first)
            run_id = owner.claimed.run.id
            is_paused, is_appended = side_by_side(
                threads,
                partial(succeeds, partial(pause, system, run_id)),
                partial(succeeds, partial(owner.append, completed("a"))),
            )
            assert is_paused
            check(system, run_id, ["paused"])
            records = [record.type for record in system.records(run_id)]
            assert ("task_completed" in records) == is_appended
            assert records[-1] == "transition"


def test_a_cancel_wins_over_a_pause_whoever_is_first() -> None:
    system = LocalSystem()
    with ThreadPoolExecutor(2) as threads:
        for _ in range(ROUNDS):
            run_id = owned(system).claimed.run.id
            is_cancelled, is_paused = side_by_side(
                threads, partial(succeeds, partial(cancel, system, run_id)), partial(succeeds, partial(pause, system, run_id))
            )
            assert is_cancelled
            check(system, run_id, ["paused", "cancelled"] if is_paused else ["cancelled"])
