"""Races for one run, 200 rounds each: whoever wins, there is exactly one winner."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from threading import Barrier
from typing import TypeVar

import pytest

from aiki_push.adapters.storage.table import Table
from aiki_push.domain.errors import RevisionConflict
from aiki_push.domain.limits import Limits
from aiki_push.domain.run_states import Queued
from aiki_push.ports.api.claims import Claimed, ClaimRun
from aiki_push.testing import FakeClock
from tests.integration.owners import Owner, claim, completed, start, started
from tests.local_system import NAMESPACE, LocalSystem

ROUNDS = 200

T = TypeVar("T")


def side_by_side(threads: ThreadPoolExecutor, *actions: Callable[[], T]) -> list[T]:
    """What `actions` return, begun in the same moment."""
    barrier = Barrier(len(actions))

    def begin(action: Callable[[], T]) -> T:
        barrier.wait()
        return action()

    return list(threads.map(begin, actions))


@pytest.mark.timeout(180)
def test_of_two_claimers_exactly_one_wins(table: Table) -> None:
    system = LocalSystem(table)

    def claimer(run_id: str, claim_id: str) -> Callable[[], bool]:
        request = ClaimRun(run_id=system.run(run_id).id, claim_id=claim_id, executor=claim_id)
        return lambda: isinstance(system.server.call(NAMESPACE, request), Claimed)

    with ThreadPoolExecutor(2) as threads:
        for _ in range(ROUNDS):
            run_id = start(system)
            won = side_by_side(threads, claimer(run_id, "A"), claimer(run_id, "B"))
            run = system.run(run_id)
            assert sorted(won) == [False, True]
            assert run.claim is not None
            assert (run.revision, run.claim.claim_id) == (1, "A" if won[0] else "B")


@pytest.mark.timeout(180)
@pytest.mark.parametrize("is_first", [True, False], ids=["first append", "later append"])
def test_of_an_append_and_a_recovery_exactly_one_wins(table: Table, is_first: bool) -> None:
    clock = FakeClock()
    system = LocalSystem(table, clock=clock, limits=Limits(claim_idle_timeout_ms=90_000))
    with ThreadPoolExecutor(2) as threads:
        for _ in range(ROUNDS):
            owner = Owner(system, claim(system, start(system)))
            if not is_first:
                owner.append(started("a"))
            clock.advance(90_000)
            is_appended, is_recovered = side_by_side(threads, partial(appends, owner), partial(recovers, system, owner))
            assert is_appended != is_recovered
            names = [record.type for record in system.records(owner.claimed.run.id)]
            assert ("task_completed" in names) == is_appended


def appends(owner: Owner) -> bool:
    try:
        owner.append(completed("a") if owner.position else started("a"), completed("a"))
    except RevisionConflict:
        return False
    return True


def recovers(system: LocalSystem, owner: Owner) -> bool:
    system.attention.advance(NAMESPACE, owner.claimed.run.id)
    return system.run(owner.claimed.run.id).state == Queued(reason="recovery")
