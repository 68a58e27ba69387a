"""Each invariant of a commit of several runs, broken: what belongs together is taken apart."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pytest

from aiki_push.adapters.storage.memory.table import MemoryTable
from aiki_push.adapters.storage.table import Write
from aiki_push.domain.follow_ups import cancellation_of_children
from aiki_push.domain.log_records import CallEnded
from aiki_push.domain.run_states import Queued
from aiki_push.domain.values import Inline, RunId
from aiki_push.ports.api.calls import StartChild
from aiki_push.ports.api.events import SendEvent
from aiki_push.testing import FaultyTable
from tests.integration.controls import cancel, pause, resume, wake_up
from tests.integration.owners import FINISH, Owner, claim, start
from tests.integration.waiting_runs import FAR, end, parked_on, wait
from tests.local_system import NAMESPACE, LocalSystem
from tests.simulation.commit_rules import faults_in
from tests.simulation.commits import Commit, RunChange
from tests.simulation.stored import Stored

CHILD = RunId("0" * 26)

Spoil = Callable[[Commit], Commit]


@dataclass(frozen=True, slots=True)
class Seen:
    """A commit, and all that is stored after it."""

    commit: Commit
    stored: dict[RunId, Stored]

    def spoiled(self, spoil: Spoil) -> list[str]:
        """What is said of the commit once it is spoiled."""
        commit = spoil(self.commit)
        stored = self.stored | {run_id: change.after for run_id, change in commit.changes.items()}
        return [fault for _, fault in faults_in(commit, stored)]


class Watch:
    """A system whose every commit is seen."""

    def __init__(self) -> None:
        table = FaultyTable(MemoryTable())
        table.after_write = self._see
        self.system = LocalSystem(table)
        self.seen: list[Seen] = []

    def _see(self, writes: Sequence[Write]) -> None:
        stored = self.seen[-1].stored if self.seen else {}
        commit = Commit.of(writes, stored)
        self.seen.append(Seen(commit, stored | {run_id: change.after for run_id, change in commit.changes.items()}))

    def parent(self) -> Owner:
        """The owner of a run that has started a child."""
        owner = Owner(self.system, claim(self.system, start(self.system)))
        call = StartChild(key="child", ordinal=0, run_id=CHILD, workflow="c", version="1")
        owner.send(owner.checkpoint().model_copy(update={"calls": (call,)}))
        return owner

    def last(self) -> Seen:
        """The latest commit."""
        return self.seen[-1]


@pytest.fixture
def watch() -> Iterator[Watch]:
    watch = Watch()
    yield watch
    assert [fault for seen in watch.seen for fault in seen.spoiled(lambda commit: commit)] == []


def without(run_id: RunId) -> Spoil:
    return lambda commit: replace(commit, changes={key: one for key, one in commit.changes.items() if key != run_id})


def changed(run_id: RunId, **fields: Any) -> Spoil:
    """With other fields of what is stored of the run."""

    def spoil(commit: Commit) -> Commit:
        change = commit.changes[run_id]
        return replace(commit, changes={**commit.changes, run_id: replace(change, after=replace(change.after, **fields))})

    return spoil


def header(run_id: RunId, **fields: Any) -> Spoil:
    return lambda commit: changed(run_id, run=commit.changes[run_id].after.run.model_copy(update=fields))(commit)


def both(first: Spoil, second: Spoil) -> Spoil:
    return lambda commit: second(first(commit))


def unsaid(change: RunChange) -> tuple[Any, ...]:
    """The slots, of which the last does not say what became of the calls."""
    *others, last = change.after.slots
    records = tuple(record for record in last.records if not isinstance(record, CallEnded))
    return (*others, last.model_copy(update={"records": records}))


def test_a_child_and_the_slot_that_says_so_come_together(watch: Watch) -> None:
    parent = watch.parent().claimed.run.id
    born = watch.last()
    no_slot = changed(parent, slots=unsaid(born.commit.changes[parent]))
    assert f"the run is a child of {parent}, whose log does not say so" in born.spoiled(no_slot)
    assert f"child {CHILD} is recorded as created, and was not" in born.spoiled(header(CHILD, parent=None))
    assert f"nobody will tell the run of the end of {CHILD}" in born.spoiled(changed(CHILD, watchers=frozenset()))


def test_the_end_of_a_child_is_told_and_forgotten_together(watch: Watch) -> None:
    parent = watch.parent().claimed.run.id
    end(watch.system, CHILD, FINISH, "claim-2")
    watch.system.attention.advance(NAMESPACE, CHILD)
    told = next(seen for seen in watch.seen if parent in seen.commit.changes and seen.commit.changes[parent].messages)
    assert f"run {parent} is not told of the end, and never will be" in told.spoiled(without(parent))
    untold = changed(CHILD, watchers=frozenset({parent}))
    assert f"the run is told of the end of {CHILD}, and will be told again" in told.spoiled(untold)


def test_the_end_of_a_child_is_told_as_it_was_and_once(watch: Watch) -> None:
    parent = watch.parent().claimed.run.id
    end(watch.system, CHILD, FINISH, "claim-2")
    watch.system.attention.advance(NAMESPACE, CHILD)
    told = next(seen for seen in watch.seen if parent in seen.commit.changes and seen.commit.changes[parent].messages)
    message = told.commit.changes[parent].messages[0]
    assert message.ending is not None
    other = message.model_copy(update={"ending": message.ending.model_copy(update={"output": Inline(value="another")})})
    assert any("the run is told that" in fault for fault in told.spoiled(changed(parent, messages=(other,))))
    twice = both(changed(parent, messages=(message, message.model_copy(update={"seq": 2}))), header(parent, inbox_seq=2))
    assert f"the run is told 2 times of the end of {CHILD}" in told.spoiled(twice)


def test_an_event_comes_with_its_reference_and_once(watch: Watch) -> None:
    run_id = start(watch.system)
    watch.system.server.call(NAMESPACE, SendEvent(run_id=run_id, event="e", data=1, reference="r"))
    sent = watch.last()
    unreferenced = sent.spoiled(lambda commit: replace(commit, sent=Counter()))
    assert "the events {'e': 1} came, and references of {} are remembered" in unreferenced
    lost = sent.spoiled(both(changed(run_id, messages=()), header(run_id, inbox_seq=0)))
    assert "the events {} came, and references of {'e': 1} are remembered" in lost
    message = sent.commit.changes[run_id].messages[0]
    twice = (message, message.model_copy(update={"seq": 2}))
    assert any("came 2 times with" in fault for fault in sent.spoiled(changed(run_id, messages=twice)))


@pytest.mark.parametrize("operate", [pause, cancel, wake_up], ids=lambda operate: operate.__name__)
def test_an_operation_is_remembered_together_with_what_it_does(
    watch: Watch, operate: Callable[[LocalSystem, RunId], Any]
) -> None:
    run_id = parked_on(watch.system, wait("sleep", "nap", FAR)) if operate is wake_up else start(watch.system)
    operate(watch.system, run_id)
    done = watch.last()
    assert any("by 0 operations" in fault for fault in done.spoiled(header(run_id, operations=())))


def test_a_resumption_is_remembered_too(watch: Watch) -> None:
    run_id = start(watch.system)
    pause(watch.system, run_id)
    resume(watch.system, run_id)
    forgotten = header(run_id, operations=watch.seen[-2].stored[run_id].run.operations)
    assert any("by 0 operations" in fault for fault in watch.last().spoiled(forgotten))


def test_an_operation_that_does_nothing_is_not_remembered(watch: Watch) -> None:
    run_id = start(watch.system)
    watch.system.server.call(NAMESPACE, SendEvent(run_id=run_id, event="e", reference="r"))
    remembering = watch.last().spoiled(header(run_id, operations=("an operation",)))
    assert "the operations ['an operation'] are remembered, and did nothing" in remembering


def test_the_children_of_a_cancelled_run_are_ended(watch: Watch) -> None:
    parent = watch.parent().claimed.run.id
    cancel(watch.system, parent)
    settled = watch.last().spoiled(header(parent, duties=(), due_at=None))
    assert f"the run is cancelled, and nobody will end its children ['{CHILD}']" in settled


def test_nobody_elses_children_are_ended(watch: Watch) -> None:
    parent, other = watch.parent().claimed.run.id, start(watch.system)
    cancel(watch.system, other, cancellation_of_children(watch.system.run(parent)))
    adopted = watch.last().spoiled(lambda commit: commit)
    assert adopted == [f"the run ends with {parent}, whose child it is not"]
    watch.seen.pop()


def test_a_parked_run_is_woken_by_what_it_waits_for(watch: Watch) -> None:
    run_id = parked_on(watch.system, wait("event", "e"), wait("sleep", "nap", FAR))
    watch.system.server.call(NAMESPACE, SendEvent(run_id=run_id, event="e", data=1, reference="r"))
    woken = watch.last()
    tail = woken.commit.changes[run_id].after.run.tail
    for reason in ("wakeup", "wakeup_early", "child_workflow", "event_wait_timeout"):
        state = Queued.model_validate({"reason": reason})
        records = (*tail.records[:-1], tail.records[-1].model_copy(update={"state": state}))
        other = header(run_id, state=state, tail=tail.model_copy(update={"records": records}))
        assert f"the run is woken for {reason}; it was told of {{'event'}}, and due are set()" in woken.spoiled(other)
