"""Calls on other runs: carried out in the transaction of the checkpoint that asks for them, each with its own outcome."""

from typing import Any

import pytest

from aiki_push.adapters.storage.table import Table
from aiki_push.domain.inbox import Message, RunEnding
from aiki_push.domain.log_records import CallResult, InputRecord, LogSlot
from aiki_push.domain.retry import fixed
from aiki_push.domain.run import RunOptions
from aiki_push.domain.run_states import Cancelled, Completed, Paused, Queued, Running, Scheduled
from aiki_push.domain.values import MAX_INLINE_BYTES, Inline, PayloadReference, RunId
from aiki_push.ports.api.calls import Call
from aiki_push.ports.api.checkpoints import Complete
from aiki_push.ports.api.events import SendEvent
from aiki_push.ports.api.runs import GetPayload, StartReference, StartRun
from aiki_push.testing import FAKE_NOW, CountingTable, FakeClock
from tests.integration.checkpoint_calls import carry_out, child, control, ended, event, results
from tests.integration.controls import asleep, call, owned, transitions
from tests.integration.owners import Owner, claim, completed, started
from tests.integration.waiting_runs import FAR, end, inbox, numbered, parked_on, run_in, wait
from tests.local_system import NAMESPACE, LocalSystem


@pytest.fixture
def counting(table: Table) -> CountingTable:
    return CountingTable(table)


@pytest.fixture
def system(counting: CountingTable) -> LocalSystem:
    return LocalSystem(counting, clock=FakeClock())


@pytest.fixture
def owner(system: LocalSystem) -> Owner:
    """Of a run that has written its first slot."""
    owner = owned(system)
    owner.append(started("first"))
    return owner


def referred(system: LocalSystem, reference: str = "order 1", value: Any = {"a": 1}) -> RunId:  # noqa: B006 - never changed
    """A queued run that a client has started with this reference."""
    request = StartRun(workflow="w", version="1", input=value, reference=StartReference(id=reference))
    return system.server.call(NAMESPACE, request).id


def watchers(system: LocalSystem, run_id: RunId) -> list[RunId]:
    return [watcher.run_id for watcher in system.store.watchers(NAMESPACE, run_id, limit=10)]


def last_slot(system: LocalSystem, run_id: RunId) -> LogSlot:
    slot = system.store.last_slot(NAMESPACE, run_id)
    assert slot is not None
    return slot


def test_calls_of_every_kind_and_their_outcomes_are_one_transaction_with_the_records_before_them(
    system: LocalSystem, counting: CountingTable, owner: Owner
) -> None:
    waiting, sleeping = parked_on(system, wait("event", "paid")), asleep(system, FAR)
    held, moving, doomed = run_in(system, "paused"), run_in(system, "queued"), run_in(system, "queued")
    calls: list[tuple[Call, CallResult]] = [
        (child(1), "created"),
        (event(waiting, data=5), "delivered"),
        (control("wakeup", sleeping, sleep="nap"), "done"),
        (control("resume", held), "done"),
        (control("pause", moving), "done"),
        (control("cancel", doomed, explanation="ordered twice"), "done"),
    ]
    counting.reset()
    outcomes = carry_out(owner, *(one for one, _ in calls), records=(completed("first"), started("second")))
    counts = counting.reset()

    assert outcomes == tuple(ended(one, result) for one, result in calls)
    assert (counts.single_writes, counts.transactions) == (0, 1)
    assert last_slot(system, owner.claimed.run.id).records == (completed("first"), started("second"), *outcomes)
    assert [system.run(run_id).state for run_id in (numbered(1), waiting, sleeping, held, moving, doomed)] == [
        Queued(reason="new"),
        Queued(reason="event"),
        Queued(reason="wakeup_early"),
        Queued(reason="resumption"),
        Paused(),
        Cancelled(),
    ]
    assert inbox(system, waiting) == (Message(seq=1, at=FAKE_NOW, kind="event", key="paid", data=Inline(value=5)),)
    assert inbox(system, sleeping) == (Message(seq=1, at=FAKE_NOW, kind="wakeup", key="nap"),)
    assert system.run(owner.claimed.run.id).state == Running()


def test_a_child_is_a_run_that_its_parent_watches(system: LocalSystem, owner: Owner) -> None:
    retry = fixed(max_attempts=3, delay_ms=500)
    options = {"pool": "eu", "priority": 1, "retry": retry.model_dump(), "delay_ms": 5_000}
    system.wakeups.hints.clear()
    carry_out(owner, child(1, options=options, reference="order 1"), child(2))
    first, second = system.run(numbered(1)), system.run(numbered(2))
    parent = owner.claimed.run.id
    assert (first.parent, first.watched, first.reference, first.options) == (
        parent,
        True,
        "order 1",
        RunOptions(pool="eu", priority=1, retry=retry),
    )
    assert first.state == Scheduled(scheduled_at=FAKE_NOW + 5_000)
    assert second.options == RunOptions()
    assert watchers(system, first.id) == watchers(system, second.id) == [parent]
    assert {hint.run_id: hint.due_at for hint in system.wakeups.hints} == {first.id: FAKE_NOW + 5_000, second.id: FAKE_NOW}
    assert (
        call(system, StartRun(workflow="w", version="1", input={"a": 1}, reference=StartReference(id="order 1"))).id == first.id
    )


def test_a_child_without_an_input_is_another_one_than_a_child_with_null(system: LocalSystem, owner: Owner) -> None:
    without = child(1).model_copy(update={"input": None})
    without.model_fields_set.discard("input")
    carry_out(owner, without, child(2, input=None))
    values = [
        [record.value for record in system.records(numbered(number)) if isinstance(record, InputRecord)] for number in (1, 2)
    ]
    assert values == [[None], [Inline(value=None)]]
    assert system.run(numbered(1)).input_hash != system.run(numbered(2)).input_hash


def test_an_event_without_data_is_another_one_than_an_event_with_null(system: LocalSystem, owner: Owner) -> None:
    for sent in (event(owner.claimed.run.id), event(owner.claimed.run.id, data=None, reference="payment 2")):
        carry_out(owner, sent)
    assert [message.data for message in inbox(system, owner.claimed.run.id)] == [None, Inline(value=None)]


def test_a_large_input_and_large_data_are_kept_with_the_runs_that_they_go_to(system: LocalSystem, owner: Owner) -> None:
    text, target = "x" * MAX_INLINE_BYTES, run_in(system, "queued")
    carry_out(owner, child(1, input=text), event(target, data=text))
    (record,) = (record for record in system.records(numbered(1)) if isinstance(record, InputRecord))
    for run_id, stored in ((numbered(1), record.value), (target, inbox(system, target)[0].data)):
        assert isinstance(stored, PayloadReference)
        assert stored.run_id == run_id
        assert call(system, GetPayload(run_id=run_id, sha256=stored.sha256)).value == text


def refused_calls(system: LocalSystem, owner: Owner) -> list[tuple[Call, str, RunId]]:
    """Calls that cannot be carried out, the codes of what they are refused with, and the run that stands in the way."""
    holder, own = referred(system, "order 1", "another input"), owner.claimed.run.id
    foreign = system.server.call("another", StartRun(workflow="w", version="1")).id
    over, queued, sleeping = run_in(system, "completed"), run_in(system, "queued"), asleep(system, FAR)
    return [
        (child(1, reference="order 1"), "reference_conflict", holder),
        (event(numbered(404)), "not_found", numbered(404)),
        (control("cancel", foreign), "not_found", foreign),
        (control("pause", over), "illegal_transition", over),
        (control("resume", queued), "illegal_transition", queued),
        (control("wakeup", sleeping, sleep="another"), "illegal_transition", sleeping),
        (control("cancel", own), "illegal_transition", own),
    ]


def test_a_refusal_is_an_outcome_of_its_call_and_the_others_go_through(system: LocalSystem, owner: Owner) -> None:
    refused, target = refused_calls(system, owner), run_in(system, "queued")
    outcomes = carry_out(owner, child(2), *(one for one, _, _ in refused), event(target), records=(started("a"),))
    assert results(outcomes) == ["created", *(code for _, code, _ in refused), "delivered"]
    assert [outcome.run_id for outcome in outcomes[1:-1]] == [about for _, _, about in refused]
    assert all(outcome.error and outcome.error.detail for outcome in outcomes[1:-1])
    assert last_slot(system, owner.claimed.run.id).records == (started("a"), *outcomes)
    assert (system.run(numbered(2)).state, len(inbox(system, target))) == (Queued(reason="new"), 1)


def test_calls_that_are_all_refused_write_nothing_but_their_slot(
    system: LocalSystem, counting: CountingTable, owner: Owner
) -> None:
    refused = refused_calls(system, owner)
    counting.reset()
    assert results(carry_out(owner, *(one for one, _, _ in refused))) == [code for _, code, _ in refused]
    assert counting.counts.items_written == 1


def test_a_run_that_goes_on_is_found_by_its_reference_and_its_end_is_told_to_whoever_found_it(
    system: LocalSystem, owner: Owner
) -> None:
    holder = referred(system)
    before = system.run(holder)
    call_ = child(1, reference="order 1", options={"priority": 0})
    assert carry_out(owner, call_) == (ended(call_, "existing", holder),)
    after = system.run(holder)
    assert after == before.model_copy(update={"etag": after.etag, "watched": True})
    end(system, holder)
    system.attention.advance(NAMESPACE, holder)
    ending = RunEnding(state=Completed(), output=Inline(value="done"))
    message = Message(seq=1, at=FAKE_NOW, kind="child", key=holder, ending=ending)
    assert inbox(system, owner.claimed.run.id) == (message,)


def test_the_end_of_a_run_that_has_ended_is_in_the_callers_inbox_by_the_same_transaction(
    system: LocalSystem, counting: CountingTable, owner: Owner
) -> None:
    small, large = referred(system, "order 1"), referred(system, "order 2")
    text = "x" * MAX_INLINE_BYTES
    end(system, small)
    end(system, large, Complete(output=Inline(value=text)))
    counting.reset()
    calls = child(1, reference="order 1"), child(2, reference="order 2")
    assert carry_out(owner, *calls) == (ended(calls[0], "existing", small), ended(calls[1], "existing", large))
    assert counting.counts.transactions == 1

    first, second = inbox(system, owner.claimed.run.id)
    assert first.ending == RunEnding(state=Completed(), output=Inline(value="done"))
    assert (first.kind, first.key, second.key) == ("child", small, large)
    assert second.ending is not None
    assert isinstance(second.ending.output, PayloadReference)
    assert second.ending.output.run_id == owner.claimed.run.id
    assert watchers(system, small) == watchers(system, large) == []


def test_another_input_finds_the_run_where_the_caller_takes_it_so(system: LocalSystem, owner: Owner) -> None:
    holder = referred(system, "order 1", "another input")
    call_ = child(1, reference="order 1", policy="return_existing")
    assert carry_out(owner, call_) == (ended(call_, "existing", holder),)
    assert watchers(system, holder) == [owner.claimed.run.id]


def test_a_run_that_starts_itself_by_its_reference_is_refused(system: LocalSystem) -> None:
    own = referred(system)
    owner = Owner(system, claim(system, own))
    assert results(carry_out(owner, child(1, reference="order 1"))) == ["reference_conflict"]
    assert watchers(system, own) == []


def test_an_id_that_is_in_use_for_another_start_is_refused(system: LocalSystem, owner: Owner) -> None:
    call(system, StartRun(run_id=numbered(1), workflow="w", version="1", input={"a": 1}))
    carry_out(owner, child(2))
    assert results(carry_out(owner, child(1), child(2, input="another"))) == ["reference_conflict"] * 2
    assert (watchers(system, numbered(1)), watchers(system, numbered(2))) == ([], [owner.claimed.run.id])


def test_an_event_to_the_run_itself_lies_in_its_own_inbox(system: LocalSystem, owner: Owner) -> None:
    own = owner.claimed.run.id
    sent = event(own, data=None), event(own)
    assert [carry_out(owner, one) for one in sent] == [(ended(one, "delivered"),) for one in sent]
    assert inbox(system, own) == (Message(seq=1, at=FAKE_NOW, kind="event", key="paid", data=Inline(value=None)),)
    assert system.run(own).state == Running()


def test_an_event_with_one_reference_is_one_message_whoever_sends_it_and_how_often(system: LocalSystem, owner: Owner) -> None:
    target, other = parked_on(system, wait("event", "paid")), run_in(system, "queued")
    call(system, SendEvent(run_id=other, event="paid", reference="payment 1"))
    for _ in range(2):
        sent = event(target), event(other)
        assert carry_out(owner, *sent) == tuple(ended(one, "delivered") for one in sent)
    assert [len(inbox(system, run_id)) for run_id in (target, other)] == [1, 1]
    carry_out(owner, event(target, reference="payment 2"))
    assert len(inbox(system, target)) == 2


def test_an_event_to_a_run_that_has_ended_is_not_delivered(system: LocalSystem, owner: Owner) -> None:
    sent = event(run_in(system, "completed"), data=1)
    assert carry_out(owner, sent) == (ended(sent, "not_delivered"),)
    assert inbox(system, sent.run_id) == ()


@pytest.mark.parametrize("control_", ["pause", "cancel"])
def test_a_run_is_taken_from_its_owner(system: LocalSystem, owner: Owner, control_: Any) -> None:
    victim = owned(system)
    victim.append(started("a"))
    asked = control(control_, victim.claimed.run.id)
    assert carry_out(owner, asked) == (ended(asked, "done"),)
    status = {"pause": "paused", "cancel": "cancelled"}[control_]
    assert transitions(system, victim.claimed.run.id) == ["queued", "running", status]
    assert carry_out(owner, asked) == (ended(asked, "done"),)


def test_a_checkpoint_without_calls_has_no_outcomes(owner: Owner) -> None:
    assert carry_out(owner, records=(completed("first"),)) == ()
