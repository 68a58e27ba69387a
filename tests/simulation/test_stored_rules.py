"""Each invariant of what is stored of one run, broken."""

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from aiki_push.domain.inbox import Message
from aiki_push.domain.log_records import AnyRecord, CallEnded, Received, Tail, WaitEnded, WaitStarted
from aiki_push.domain.run import Directive
from aiki_push.domain.run_states import Completed, Paused, Queued
from aiki_push.domain.values import RunId, TimestampMs
from tests.integration.owners import Owner, claim, completed, start, started
from tests.integration.waiting_runs import FAR, parked_on, wait
from tests.local_system import NAMESPACE, LocalSystem
from tests.simulation.inbox_rules import faults_of_timeouts
from tests.simulation.rules import faults_between, faults_of
from tests.simulation.stored import Stored

AT = TimestampMs(5)
OTHER = RunId("0" * 26)
STOP = Directive(action="pause", operation_id="o")

Spoil = Callable[[Stored], Stored]


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


@pytest.fixture
def parked() -> Stored:
    system = LocalSystem()
    waits = (wait("event", "e"), wait("child", OTHER), wait("sleep", "nap", FAR))
    return stored(system, parked_on(system, *waits))


def header(**fields: Any) -> Spoil:
    return lambda stored: replace(stored, run=stored.run.model_copy(update=fields))


def slot(position: int, **fields: Any) -> Spoil:
    def change(stored: Stored) -> Stored:
        slots = [one.model_copy(update=fields) if one.position == position else one for one in stored.slots]
        return replace(stored, slots=tuple(slots))

    return change


def recorded(*records: AnyRecord) -> Spoil:
    """With these records at the end of the log, in its last slot or in its tail."""

    def change(stored: Stored) -> Stored:
        if stored.is_sealed:
            last = stored.slots[-1]
            return slot(last.position, records=(*last.records, *records))(stored)
        tail = stored.run.tail
        return header(tail=Tail(position=tail.position, records=(*tail.records, *records)))(stored)

    return change


def told(*messages: Message, seen: int = 0, **fields: Any) -> Spoil:
    """With an inbox of these messages, of which the run has seen some."""
    return lambda stored: header(inbox_seq=len(messages), seen_seq=seen, **fields)(replace(stored, messages=messages))


def event(seq: int, key: str = "e", at: TimestampMs = AT) -> Message:
    return Message(seq=seq, at=at, kind="event", key=key)


def end(seq: int) -> Message:
    return Message(seq=seq, at=AT, kind="child", key=OTHER)


def wake(seq: int, at: TimestampMs = FAR) -> Message:
    return Message(seq=seq, at=at, kind="wakeup", key="*")


def receipt(seq: int, ordinal: int = 0) -> Received:
    return Received(at=AT, seq=seq, kind="event", key="e", ordinal=ordinal)


def child_started(ordinal: int = 0) -> CallEnded:
    return CallEnded(at=AT, kind="child", key="k", ordinal=ordinal, run_id=OTHER, result="created")


def both(*changes: Spoil) -> Spoil:
    def change(stored: Stored) -> Stored:
        for one in changes:
            stored = one(stored)
        return stored

    return change


def named(value: object) -> str | None:
    return value if isinstance(value, str) else None


def test_what_an_honest_owner_wrote_has_no_fault(good: Stored, parked: Stored) -> None:
    assert [*faults_of(good), *faults_of(parked)] == []


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
        (header(state=Completed()), "looked at for ever, or never"),
        (header(state=Completed(), due_at=None, duties=("tell_watchers",)), "looked at for ever, or never"),
        (header(state=Paused()), "waits for somebody's decision"),
        (header(state=Paused()), "was paused from None"),
        (header(state=Queued(reason="recovery"), directive=STOP), "which nobody is there to obey"),
        (header(state=Queued(reason="recovery")), "in no queue"),
        (header(waits=(wait("event", "e"),)), "still waits for"),
        (header(duties=("tell_watchers",)), "which are for runs that have ended"),
        (header(revision=2), "the run is at revision 2"),
        (header(attempts=2), "in attempt 2 after 0 retries"),
        (header(inbox_seq=1), "the header counts 1"),
        (lambda stored: replace(stored, watchers=frozenset({OTHER})), "the header does not say that"),
        (recorded(started("b")), "task b is started again although nothing interrupted it"),
        (recorded(started("a")), "task a is started although it has ended"),
        (recorded(completed("c")), "task c has an outcome, task_completed, without an execution"),
        (recorded(started("c").model_copy(update={"attempt": 2})), "task c is in attempt 2 after 0 failures"),
        (
            recorded(WaitEnded(at=AT, kind="timer", key="k", ordinal=1)),
            "wait ('timer', 'k', 1) ends twice, or without a beginning",
        ),
        (both(told(event(1), event(2)), recorded(receipt(1), receipt(2))), "wait ('event', 'e', 0) ends twice"),
        (both(told(event(1), event(2)), recorded(receipt(1), receipt(1, 1))), "given twice, lost or out of order"),
        (both(told(event(1), event(2)), recorded(receipt(2))), "given twice, lost or out of order"),
        (recorded(receipt(1)), "the run received message 1 for event e, and that is None"),
        (both(told(event(1, "other")), recorded(receipt(1))), "the run received message 1 for event e, and that is v=1"),
        (recorded(child_started(), child_started()), "call k 0 is carried out twice"),
        (recorded(child_started(), child_started(ordinal=1)), "was created 2 times"),
    ],
    ids=named,
)
def test_a_fault_is_seen(good: Stored, spoil: Spoil, fault: str) -> None:
    assert any(fault in found for found in faults_of(spoil(good)))


@pytest.mark.parametrize(
    ("spoil", "fault"),
    [
        (header(due_at=None), "sleeps past its deadline"),
        (header(waits=()), "waits for nothing"),
        (header(seen_seq=1), "the run has seen message 1 of 0"),
        (told(event(1)), "nothing wakes it for event e, which it waits for"),
        (told(event(1), seen=1), "has seen message 1, which ends that"),
        (told(wake(1), seen=1), "parked on sleep nap, and has seen message 1"),
        (told(end(1), open_child_waits=2), "long after it was told of the end of 0"),
        (told(end(1), open_child_waits=1), "has not seen 1 messages, waits for 1 children, and is not woken"),
    ],
    ids=named,
)
def test_a_fault_of_a_parked_run_is_seen(parked: Stored, spoil: Spoil, fault: str) -> None:
    assert any(fault in found for found in faults_of(spoil(parked)))


@pytest.mark.parametrize(
    "spoil",
    [
        told(event(1, "other"), event(2, "other"), seen=1),
        both(told(event(1), seen=1), recorded(receipt(1))),
        told(end(1), open_child_waits=2, due_at=TimestampMs(AT + 1_000)),
        both(told(wake(1, at=AT), seen=1), recorded(WaitStarted(at=TimestampMs(AT + 1), kind="sleep", key="nap", ordinal=0))),
    ],
    ids=["an event that nobody waits for", "one that was received", "a window", "a wake before the sleep"],
)
def test_a_parked_run_may_have_messages(parked: Stored, spoil: Spoil) -> None:
    assert list(faults_of(spoil(parked))) == []


def test_a_wait_that_ends_too_early_is_seen(good: Stored) -> None:
    began = WaitStarted(at=AT, kind="timer", key="k", ordinal=1, deadline_at=TimestampMs(AT + 1))
    ended = WaitEnded(at=AT, kind="timer", key="k", ordinal=1)
    faults = list(faults_of(recorded(began, ended)(good)))
    assert faults == ["wait ('timer', 'k', 1) ends at 5, before its deadline 6"]


def test_a_wait_that_times_out_although_its_event_came_in_time_is_seen(good: Stored) -> None:
    began = WaitStarted(at=AT, kind="event", key="e", ordinal=0, deadline_at=TimestampMs(AT + 9))
    waiting = replace(both(told(event(1)), recorded(began))(good), claimed_seq=1)
    over = recorded(WaitEnded(at=TimestampMs(AT + 9), kind="event", key="e", ordinal=0))(waiting)
    assert list(faults_of_timeouts(replace(waiting, claimed_seq=0), over)) == []
    assert list(faults_of_timeouts(waiting, over)) == ["event e timed out at 14; message 1 was there since 5"]


@pytest.mark.parametrize(
    ("spoil", "fault"),
    [
        (slot(1, records=()), "gone, or hidden"),
        (slot(1, at=AT), "a slot or a message was changed"),
        (header(revision=3), "the revision went from 1 to 3"),
    ],
    ids=named,
)
def test_a_commit_that_changes_what_was_written_is_seen(good: Stored, spoil: Spoil, fault: str) -> None:
    assert any(fault in found for found in faults_between(good, spoil(good)))


def test_a_directive_that_is_forgotten_is_seen(good: Stored) -> None:
    directed = header(directive=STOP)(good)
    assert "what the run's owner was directed to do is forgotten" in list(faults_between(directed, good))


def test_a_run_without_an_owner_that_does_something_is_seen(parked: Stored) -> None:
    faults = [
        fault for fault in faults_between(parked, recorded(started("a"))(parked)) if re.match(r"the run is \w+ and does", fault)
    ]
    assert faults == ["the run is sleeping and does something: ['task_started']"]
