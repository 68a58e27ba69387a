"""Events: delivered to runs in every state, once for each reference, in order, and waking whoever waits for them."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest

from aiki_push.adapters.storage.table import Table, Write
from aiki_push.domain.errors import InvalidRequest, NotFound, PayloadTooLarge, StorageUnavailable
from aiki_push.domain.inbox import Message
from aiki_push.domain.run_states import PARKED, STATUSES, TERMINAL, Queued, Status
from aiki_push.domain.values import MAX_INLINE_BYTES, MAX_VALUE_BYTES, Inline, PayloadReference, RunId
from aiki_push.domain.waits import ANY_KEY, Wait
from aiki_push.ports.api.events import EventSent, SendEvent
from aiki_push.ports.api.runs import GetPayload
from aiki_push.ports.wakeups import Hint
from aiki_push.testing import FAKE_NOW, CountingTable, Counts, FakeClock, FaultyTable
from tests.integration.owners import claim
from tests.integration.waiting_runs import FAR, inbox, numbered, parked_on, run_in, wait
from tests.local_system import NAMESPACE, LocalSystem

DELIVERED, NOT_DELIVERED = EventSent(delivered=True), EventSent(delivered=False)


@pytest.fixture
def system(table: Table) -> LocalSystem:
    return LocalSystem(table, clock=FakeClock())


def send(system: LocalSystem, run_id: RunId, event: str = "paid", reference: str | None = None) -> EventSent:
    return system.server.call(NAMESPACE, SendEvent(run_id=run_id, event=event, data=5, reference=reference))


def message(seq: int = 1, event: str = "paid") -> Message:
    return Message(seq=seq, at=FAKE_NOW, kind="event", key=event, data=Inline(value=5))


@pytest.mark.parametrize("status", [status for status in STATUSES if status not in TERMINAL])
def test_a_run_in_any_state_keeps_an_event_that_it_does_not_wait_for(system: LocalSystem, status: Status) -> None:
    run_id = run_in(system, status)
    before = system.run(run_id)
    assert send(system, run_id, "refunded") == DELIVERED
    after = system.run(run_id)
    assert after == before.model_copy(update={"etag": after.etag, "inbox_seq": 1})
    assert inbox(system, run_id) == (message(1, "refunded"),)


@pytest.mark.parametrize("status", sorted(TERMINAL))
@pytest.mark.parametrize("reference", [None, "payment 1"])
def test_a_run_that_has_ended_takes_no_event_and_nothing_is_written(table: Table, status: Status, reference: str | None) -> None:
    counting = CountingTable(table)
    system = LocalSystem(counting, clock=FakeClock())
    run_id = run_in(system, status)
    counting.reset()
    assert send(system, run_id, reference=reference) == NOT_DELIVERED
    assert (counting.counts.single_writes, counting.counts.transactions) == (0, 0)


def test_an_event_is_one_transaction_of_header_message_and_reference(table: Table) -> None:
    counting = CountingTable(table)
    system = LocalSystem(counting, clock=FakeClock())
    run_id = parked_on(system, wait("event", "paid"))
    counting.reset()
    send(system, run_id, reference="payment 1")
    assert counting.counts == Counts(transactions=1, items_written=3, write_units=6, gets=1)


@pytest.mark.parametrize(
    "waits",
    [
        (wait("event", "paid"),),
        (wait("event", "refunded"), wait("event", "paid", FAR)),
        (wait("sleep", "pause", FAR), wait("event", "paid")),
        (wait("child", numbered(1)), wait("event", "paid")),
        (wait("task_retry", "task-1", FAR), wait("event", "paid")),
    ],
)
def test_a_run_that_waits_for_the_event_is_queued_at_once(system: LocalSystem, waits: tuple[Wait, ...]) -> None:
    run_id = parked_on(system, *waits)
    system.wakeups.hints.clear()
    send(system, run_id)
    run = system.run(run_id)
    assert (run.state, run.ready_at, run.due_at, run.waits) == (Queued(reason="event"), FAKE_NOW, FAKE_NOW, ())
    assert system.wakeups.hints == [Hint(namespace=NAMESPACE, run_id=run_id, due_at=FAKE_NOW)]
    assert claim(system, run_id, "claim-2").messages == (message(),)


@pytest.mark.parametrize("waits", [(wait("sleep", "paid", FAR),), (wait("child", "paid"),), (wait("event", "refunded"),)])
def test_a_run_that_waits_for_something_else_sleeps_on(system: LocalSystem, waits: tuple[Wait, ...]) -> None:
    run_id = parked_on(system, *waits)
    send(system, run_id)
    assert system.run(run_id).state.status in PARKED
    assert system.run(run_id).waits == waits


@pytest.mark.parametrize(("kind", "status"), [("event", "queued"), ("child", "awaiting_child_workflow")])
def test_a_run_with_more_waits_than_its_header_holds_is_woken_by_every_event_if_it_waits_for_any(
    system: LocalSystem, kind: str, status: Status
) -> None:
    waits = [Wait.model_validate({"kind": kind, "key": f"key-{number}", "ordinal": 0}) for number in range(100)]
    run_id = parked_on(system, *waits)
    assert [one.key for one in system.run(run_id).waits] == [ANY_KEY]
    send(system, run_id, "not-waited-for")
    assert system.run(run_id).state.status == status


def test_messages_are_numbered_in_the_order_of_their_arrival(system: LocalSystem) -> None:
    run_id = parked_on(system, wait("event", "paid"))
    events = ["refunded", "paid", "refunded", "paid"]
    for event in events:
        send(system, run_id, event)
    assert inbox(system, run_id) == tuple(message(seq, event) for seq, event in enumerate(events, start=1))
    assert claim(system, run_id, "claim-2").messages == tuple(inbox(system, run_id))


def test_no_data_and_null_are_different(system: LocalSystem) -> None:
    run_id = run_in(system, "queued")
    system.server.call(NAMESPACE, SendEvent(run_id=run_id, event="without"))
    system.server.call(NAMESPACE, SendEvent(run_id=run_id, event="null", data=None))
    assert [one.data for one in inbox(system, run_id)] == [None, Inline(value=None)]


def test_large_data_is_kept_with_the_run_that_it_was_sent_to(system: LocalSystem) -> None:
    run_id, text = run_in(system, "queued"), "x" * MAX_INLINE_BYTES
    system.server.call(NAMESPACE, SendEvent(run_id=run_id, event="paid", data=text))
    (told,) = inbox(system, run_id)
    assert isinstance(told.data, PayloadReference)
    assert (told.data.run_id, told.data.size) == (run_id, MAX_INLINE_BYTES + 2)
    assert system.server.call(NAMESPACE, GetPayload(run_id=run_id, sha256=told.data.sha256)).value == text


@pytest.mark.parametrize(
    ("data", "fault"),
    [
        (float("nan"), "data is nan"),
        ({"amount": [1, float("inf")]}, "data.amount[1] is inf"),
        ({1: "a"}, "data has a key of type int: keys must be str"),
        ({"when": (1, 2)}, "data.when is tuple: use None, bool, int, float, str, list or dict"),
    ],
)
def test_data_that_is_no_json_is_refused_by_its_place(system: LocalSystem, data: object, fault: str) -> None:
    run_id = run_in(system, "queued")
    with pytest.raises(InvalidRequest) as refused:
        system.server.call(NAMESPACE, SendEvent.model_validate({"run_id": run_id, "event": "paid", "data": data}))
    assert refused.value.fields["errors"] == [{"field": "data", "message": fault}]
    assert inbox(system, run_id) == ()


def test_data_over_the_limit_is_refused_and_named(system: LocalSystem) -> None:
    run_id = run_in(system, "queued")
    with pytest.raises(PayloadTooLarge) as refused:
        system.server.call(NAMESPACE, SendEvent(run_id=run_id, event="paid", data="x" * MAX_VALUE_BYTES))
    assert (refused.value.fields["field"], refused.value.fields["run_id"]) == ("data", run_id)
    assert inbox(system, run_id) == ()


def test_an_event_to_nobody_is_not_found(system: LocalSystem) -> None:
    with pytest.raises(NotFound):
        send(system, numbered(404))
    run_id = run_in(system, "queued")
    with pytest.raises(NotFound):
        system.server.call("another", SendEvent(run_id=run_id, event="paid"))
    assert inbox(system, run_id) == ()


def test_a_repeated_reference_is_the_same_event(system: LocalSystem) -> None:
    run_id = parked_on(system, wait("event", "paid"))
    assert [send(system, run_id, reference="payment 1") for _ in range(3)] == [DELIVERED] * 3
    claim(system, run_id, "claim-2")
    assert send(system, run_id, reference="payment 1") == DELIVERED
    assert inbox(system, run_id) == (message(),)


def test_a_reference_is_one_of_a_kind_only_within_its_run_and_event(system: LocalSystem) -> None:
    run_id, other_id = run_in(system, "queued"), run_in(system, "queued")
    for target, event, reference in [
        (run_id, "paid", "payment 1"),
        (run_id, "refunded", "payment 1"),
        (run_id, "paid", "payment 2"),
        (other_id, "paid", "payment 1"),
    ]:
        assert send(system, target, event, reference) == DELIVERED
    assert inbox(system, run_id) == (message(1, "paid"), message(2, "refunded"), message(3, "paid"))
    assert inbox(system, other_id) == (message(),)


@pytest.mark.timeout(180)
@pytest.mark.parametrize(("reference", "rounds", "messages"), [("payment 1", 200, 1), (None, 40, 2)])
def test_of_two_senders_with_one_reference_one_is_heard_and_both_are_told_so(
    table: Table, reference: str | None, rounds: int, messages: int
) -> None:
    system = LocalSystem(table)
    barrier = Barrier(2)

    def send_at_once(run_id: RunId) -> EventSent:
        barrier.wait()
        return send(system, run_id, reference=reference)

    with ThreadPoolExecutor(2) as threads:
        for round_number in range(rounds):
            run_id = parked_on(system, wait("event", "paid")) if round_number % 2 else run_in(system, "queued")
            assert list(threads.map(send_at_once, [run_id, run_id])) == [DELIVERED, DELIVERED]
            assert len(inbox(system, run_id)) == messages
            assert system.run(run_id).state.status == "queued"


@pytest.mark.parametrize("reference", [None, "payment 1"])
@pytest.mark.parametrize("waits", [True, False])
def test_an_event_whose_answer_from_the_table_was_lost_is_there_once(table: Table, waits: bool, reference: str | None) -> None:
    faulty = FaultyTable(table)
    system = LocalSystem(faulty, clock=FakeClock())
    run_id = parked_on(system, wait("event", "paid")) if waits else run_in(system, "queued")

    def lose(_: Sequence[Write]) -> None:
        faulty.after_write = lambda _: None
        raise StorageUnavailable("the answer was lost")

    faulty.after_write = lose
    assert send(system, run_id, reference=reference) == DELIVERED
    assert len(inbox(system, run_id)) == 1
    assert system.run(run_id).state.status == "queued"


def test_an_event_that_got_no_answer_at_all_is_sent_again_by_its_reference(table: Table) -> None:
    faulty = FaultyTable(table)
    system = LocalSystem(faulty, clock=FakeClock())
    run_id = parked_on(system, wait("event", "paid"))

    def lose(_: Sequence[Write]) -> None:
        raise StorageUnavailable("the answer was lost")

    def lose_all(_: Sequence[Write]) -> None:
        faulty.before_write = lose
        raise StorageUnavailable("the answer was lost")

    faulty.after_write = lose_all
    with pytest.raises(StorageUnavailable):
        send(system, run_id, reference="payment 1")
    faulty.before_write = faulty.after_write = lambda _: None
    assert send(system, run_id, reference="payment 1") == DELIVERED
    assert len(inbox(system, run_id)) == 1
