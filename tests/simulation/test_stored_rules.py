"""Each invariant of what is stored, broken."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from aiki_push.domain.log_records import AnyRecord, Tail, WaitEnded, WaitStarted
from aiki_push.domain.run_states import Completed
from aiki_push.domain.values import TimestampMs
from tests.integration.owners import Owner, claim, completed, start, started
from tests.local_system import NAMESPACE, LocalSystem
from tests.simulation.rules import faults_between, faults_of
from tests.simulation.stored import Stored

AT = TimestampMs(5)


def stored(system: LocalSystem, run_id: str) -> Stored:
    return Stored(system.run(run_id), system.store.log(NAMESPACE, run_id, after=-1, max_bytes=2**31).slots)


@pytest.fixture
def owner() -> Owner:
    system = LocalSystem()
    owner = Owner(system, claim(system, start(system)))
    owner.append(started("a"))
    owner.append(completed("a"), started("b"))
    return owner


@pytest.fixture
def good(owner: Owner) -> Stored:
    return stored(owner.system, owner.claimed.run.id)


def header(**fields: Any) -> Callable[[Stored], Stored]:
    return lambda stored: replace(stored, run=stored.run.model_copy(update=fields))


def slot(position: int, **fields: Any) -> Callable[[Stored], Stored]:
    def change(stored: Stored) -> Stored:
        slots = [one.model_copy(update=fields) if one.position == position else one for one in stored.slots]
        return replace(stored, slots=tuple(slots))

    return change


def recorded(*records: AnyRecord) -> Callable[[Stored], Stored]:
    def change(stored: Stored) -> Stored:
        last = stored.slots[-1]
        return slot(last.position, records=(*last.records, *records))(stored)

    return change


def named(value: object) -> str | None:
    return value if isinstance(value, str) else None


def test_what_an_honest_owner_wrote_has_no_fault(good: Stored) -> None:
    assert list(faults_of(good)) == []


@pytest.mark.parametrize(
    ("spoil", "fault"),
    [
        (lambda stored: replace(stored, slots=stored.slots[1:]), "the log has a gap"),
        (header(tail=Tail(position=9, records=())), "and its tail is at 9"),
        (slot(1, revision=0), "an older claim wrote after a newer one"),
        (slot(1, claim_id="another"), "not by the run's owner"),
        (slot(0, records=()), "hides records of the tail"),
        (header(due_at=None), "nothing will ever wake it"),
        (header(claim=None), "with claim None"),
        (header(state=Completed()), "and due again"),
        (header(revision=2), "the run is at revision 2"),
        (header(attempts=2), "in attempt 2 after 0 retries"),
        (recorded(started("b")), "task b is started again although nothing interrupted it"),
        (recorded(started("a")), "task a is started although it has ended"),
        (recorded(completed("c")), "task c has an outcome, task_completed, without an execution"),
        (recorded(started("c").model_copy(update={"attempt": 2})), "task c is in attempt 2 after 0 failures"),
        (recorded(WaitEnded(at=AT, kind="timer", key="k", ordinal=1)), "wait k 1 ends twice, or without a beginning"),
    ],
    ids=named,
)
def test_a_fault_is_seen(good: Stored, spoil: Callable[[Stored], Stored], fault: str) -> None:
    assert any(fault in found for found in faults_of(spoil(good)))


def test_a_wait_that_ends_too_early_is_seen(good: Stored) -> None:
    began = WaitStarted(at=AT, kind="timer", key="k", ordinal=1, deadline_at=TimestampMs(AT + 1))
    ended = WaitEnded(at=AT, kind="timer", key="k", ordinal=1)
    assert list(faults_of(recorded(began, ended)(good))) == ["wait k 1 ends at 5, before its deadline 6"]


@pytest.mark.parametrize(
    ("spoil", "fault"),
    [
        (slot(1, records=()), "gone, or hidden"),
        (slot(1, at=AT), "a slot was changed"),
        (header(revision=3), "the revision went from 1 to 3"),
    ],
    ids=named,
)
def test_a_commit_that_changes_what_was_written_is_seen(good: Stored, spoil: Callable[[Stored], Stored], fault: str) -> None:
    assert any(fault in found for found in faults_between(good, spoil(good)))
