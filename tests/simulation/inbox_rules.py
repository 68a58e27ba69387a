"""The invariants of what a run was told: no message lost, given twice or slept through; and of those who are to be told of its end."""

from collections.abc import Iterator
from dataclasses import dataclass

from aiki_push.domain.inbox import Message, MessageKind
from aiki_push.domain.log_records import AnyRecord, Received, WaitEnded, WaitStarted
from aiki_push.domain.messages import MAX_WINDOW_MS
from aiki_push.domain.run_states import PARKED
from aiki_push.domain.waits import ANY_KEY, Wait, WaitKind
from tests.simulation.stored import Stored

_MESSAGES: dict[WaitKind, MessageKind] = {"event": "event", "child": "child", "sleep": "wakeup"}


def faults_of_inbox(stored: Stored, records: tuple[AnyRecord, ...]) -> Iterator[str]:
    """What is wrong with the inbox of a run whose log is `records`."""
    run, messages = stored.run, stored.messages
    if [message.seq for message in messages] != list(range(1, run.inbox_seq + 1)):
        yield f"the inbox has the messages {[message.seq for message in messages]}; the header counts {run.inbox_seq}"
        return
    if run.seen_seq > run.inbox_seq:
        yield f"the run has seen message {run.seen_seq} of {run.inbox_seq}"
    received = [record for record in records if isinstance(record, Received)]
    yield from _faults_of_received(received, messages)
    if run.state.status in PARKED:
        yield from _faults_of_unseen(stored)
        yield from _faults_of_seen(stored, received, records)
    yield from _faults_of_watchers(stored)


def _faults_of_received(received: list[Received], messages: tuple[Message, ...]) -> Iterator[str]:
    """Events of one name are received one after the other, in the order of their numbers, none twice and none left out."""
    for record in received:
        message = messages[record.seq - 1] if record.seq <= len(messages) else None
        if message is None or message.kind != _MESSAGES[record.kind] or message.key not in (record.key, ANY_KEY):
            yield f"the run received message {record.seq} for {record.kind} {record.key}, and that is {message}"
    for key in dict.fromkeys(record.key for record in received if record.kind == "event"):
        sent = [message.seq for message in messages if (message.kind, message.key) == ("event", key)]
        taken = [record.seq for record in received if (record.kind, record.key) == ("event", key)]
        if taken != sent[: len(taken)]:
            yield f"event {key} came in the messages {sent} and was received in {taken}: given twice, lost or out of order"


def _faults_of_unseen(stored: Stored) -> Iterator[str]:
    """A message that a parked run waits for wakes it: an event at once, ends of children within their window."""
    run = stored.run
    unseen = stored.messages[run.seen_seq :]
    wanted = [message for message in unseen if any(_is_wanted(message, wait) for wait in run.waits)]
    for message in wanted:
        is_late = run.due_at is None or run.due_at > message.at + MAX_WINDOW_MS
        if message.kind != "child":
            yield f"the run is parked, and nothing wakes it for {message.kind} {message.key}, which it waits for"
        elif is_late and not run.advance_errors:
            yield f"the run is due at {run.due_at}, long after it was told of the end of {message.key}, which it waits for"
    if wanted and wanted[-1].seq - run.seen_seq >= run.open_child_waits:
        yield f"the run has not seen {len(unseen)} messages, waits for {run.open_child_waits} children, and is not woken"


def _faults_of_seen(stored: Stored, received: list[Received], records: tuple[AnyRecord, ...]) -> Iterator[str]:
    """Nobody parks on what has come already."""
    seen = stored.messages[: stored.run.seen_seq]
    taken = {record.seq for record in received if record.kind == "event"}
    begun = {(one.record.key, one.record.ordinal): one for one in _begun(records) if one.record.kind == "sleep"}
    for wait in stored.run.waits:
        for message in seen:
            if wait.key == ANY_KEY or not _is_wanted(message, wait) or message.seq in taken:
                continue
            began = begun.get((wait.key, wait.ordinal)) if wait.kind == "sleep" else None
            if began is not None and not began.may_be_ended_by(message):
                continue
            yield f"the run is parked on {wait.kind} {wait.key}, and has seen message {message.seq}, which ends that"


def faults_of_timeouts(before: Stored, after: Stored) -> Iterator[str]:
    """No wait times out while a message is there that came in time and that its executor saw when it claimed the run."""
    records = after.records
    begun = {(one.record.kind, one.record.key, one.record.ordinal): one for one in _begun(records)}
    for index in range(len(before.records), len(records)):
        ended = records[index]
        if not isinstance(ended, WaitEnded) or ended.kind not in _MESSAGES:
            continue
        began = begun[ended.kind, ended.key, ended.ordinal]
        deadline_at = began.record.deadline_at or 0
        taken = {one.seq for one in records[:index] if isinstance(one, Received) and one.kind == "event"}
        for message in after.messages[: before.claimed_seq]:
            is_same = message.kind == _MESSAGES[ended.kind] and message.key in (ended.key, ANY_KEY) and message.seq not in taken
            if is_same and message.at <= deadline_at and (ended.kind != "sleep" or began.may_be_ended_by(message)):
                yield f"{ended.kind} {ended.key} timed out at {deadline_at}; message {message.seq} was there since {message.at}"


@dataclass(frozen=True, slots=True)
class _Begun:
    """A wait, a time by which it had begun by the workflow's clock, which is the latest that it was given, and what sleeps had received."""

    record: WaitStarted
    at: int
    received: frozenset[int]

    def may_be_ended_by(self, wake: Message) -> bool:
        """Whether an early wake ends this sleep: it is not older, and had not ended another one before."""
        return wake.at >= self.at and wake.seq not in self.received


def _begun(records: tuple[AnyRecord, ...]) -> Iterator[_Begun]:
    latest, received = 0, frozenset[int]()
    for record in records:
        latest = max(latest, record.at)
        if isinstance(record, WaitStarted):
            yield _Begun(record, latest, received)
        elif isinstance(record, Received) and record.kind == "sleep":
            received |= {record.seq}


def _is_wanted(message: Message, wait: Wait) -> bool:
    is_same_kind = _MESSAGES.get(wait.kind) == message.kind
    return is_same_kind and (message.key == wait.key or ANY_KEY in (message.key, wait.key))


def _faults_of_watchers(stored: Stored) -> Iterator[str]:
    run = stored.run
    if stored.watchers and not stored.has_ended and not run.watched:
        yield f"the header does not say that {sorted(stored.watchers)} are to be told of its end"
    if stored.watchers and stored.has_ended and "tell_watchers" not in run.duties:
        yield f"the run is {run.state.status}, and nobody will tell {sorted(stored.watchers)}"
