"""The due and ready indexes: who is in them, and in which order."""

import pytest

from aiki_push.adapters.storage.store import SingleTableStore
from aiki_push.adapters.storage.table import Table
from aiki_push.domain.changes import CreateRun, SaveRun
from aiki_push.domain.run import Run, RunOptions
from aiki_push.domain.run_states import Completed, Queued, RunState, Scheduled
from aiki_push.domain.values import TimestampMs
from aiki_push.ports.store import DueRun, Queue
from aiki_push.testing import FAKE_NOW, CountingTable, Counts, FakeClock, SequentialEntropy
from tests.contracts.stored_examples import claimed, pulled_run, queued_run, run_id

QUEUE = Queue("default", "orders", "1.0.0", None)


def at(ms: int) -> TimestampMs:
    return TimestampMs(FAKE_NOW + ms)


def ready(number: int, ms: int, *, priority: int = 5, pool: str | None = None) -> Run:
    return queued_run(number, at=at(ms)).model_copy(update={"options": RunOptions(priority=priority, pool=pool)})


def create(store: SingleTableStore, *runs: Run) -> None:
    for run in runs:
        store.commit(CreateRun(run))


def due(number: int, ms: int, namespace: str = "default") -> DueRun:
    return DueRun(namespace, run_id(number), at(ms))


def save(store: SingleTableStore, number: int, **changes: object) -> None:
    store.commit(SaveRun(store.load("default", run_id(number)).model_copy(update=changes)))


def test_ready_runs_come_by_time_then_priority_then_id(store: SingleTableStore) -> None:
    create(
        store,
        ready(5, 20, priority=0),
        ready(4, 10, priority=5),
        ready(3, 10, priority=5),
        ready(2, 10, priority=9),
        ready(6, 10, priority=0),
        ready(1, 30, priority=0),
    )
    expected = tuple(map(run_id, (6, 3, 4, 2, 5, 1)))
    assert store.ready_runs(QUEUE, limit=10) == expected
    assert store.ready_runs(QUEUE, limit=2) == expected[:2]
    assert store.ready_runs(QUEUE, limit=0) == ()


def test_each_queue_has_its_own_ready_runs(store: SingleTableStore) -> None:
    pooled, other = ready(2, 0, pool="gpu"), queued_run(4, namespace="other")
    version = ready(3, 0).model_copy(update={"version": "2"})
    create(store, ready(1, 0), pooled, version, other, ready(5, 0).model_copy(update={"workflow": "refunds"}))
    assert store.ready_runs(QUEUE, limit=10) == (run_id(1),)
    assert store.ready_runs(Queue("default", "orders", "1.0.0", "gpu"), limit=10) == (run_id(2),)
    assert store.ready_runs(Queue("default", "orders", "2", None), limit=10) == (run_id(3),)
    assert store.ready_runs(Queue("other", "orders", "1.0.0", None), limit=10) == (run_id(4),)
    assert store.ready_runs(Queue("default", "refunds", "1.0.0", None), limit=10) == (run_id(5),)
    assert store.ready_runs(Queue("default", "orders", "1.0.0", "cpu"), limit=10) == ()


def test_runs_of_several_queues_come_in_one_order(counted_store: SingleTableStore, counting: CountingTable) -> None:
    queues = [QUEUE, Queue("default", "orders", "1.0.0", "gpu"), Queue("default", "orders", "2", None)]
    create(
        counted_store,
        ready(1, 30),
        ready(2, 10, pool="gpu"),
        ready(3, 10, priority=4).model_copy(update={"version": "2"}),
        ready(4, 10),
        ready(5, 9, pool="gpu", priority=9),
        ready(6, 0, pool="cpu"),
    )
    counting.reset()
    expected = tuple(map(run_id, (5, 3, 2, 4, 1)))
    assert counted_store.ready_runs(*queues, limit=10) == expected
    assert counting.counts.queries == 3
    assert counted_store.ready_runs(*reversed(queues), limit=2) == expected[:2]
    assert counted_store.ready_runs(limit=10) == ()


def test_due_offers_are_the_ready_runs_whose_offer_is_due_in_their_order(store: SingleTableStore) -> None:
    create(store, *(ready(number, 50 - number) for number in range(10)))
    for number in (9, 7, 4):
        save(store, number, due_at=at(1_000 + number))
    assert store.due_offers(QUEUE, until=at(999), limit=10) == tuple(map(run_id, (8, 6, 5, 3, 2, 1, 0)))
    assert store.due_offers(QUEUE, until=at(999), limit=2) == tuple(map(run_id, (8, 6)))
    assert store.due_offers(QUEUE, until=at(1_007), limit=4) == tuple(map(run_id, (8, 7, 6, 5)))
    save(store, 8, due_at=None)
    assert store.due_offers(QUEUE, until=at(1_007), limit=1) == (run_id(7),)
    assert store.due_offers(Queue("default", "orders", "2", None), until=at(1_007), limit=1) == ()


def test_due_offers_behind_many_that_are_not_due_are_found_as_far_as_a_thousand(
    counted_store: SingleTableStore, counting: CountingTable
) -> None:
    waiting = [ready(number, number).model_copy(update={"due_at": at(10**6)}) for number in range(250)]
    create(counted_store, *waiting, ready(250, 250), ready(251, 251))
    counting.reset()
    assert counted_store.due_offers(QUEUE, until=at(300), limit=5) == (run_id(250), run_id(251))
    assert counting.reset() == Counts(queries=3)
    assert counted_store.due_offers(QUEUE, until=at(10**6), limit=5) == tuple(map(run_id, range(5)))
    assert counting.reset() == Counts(queries=1)


def pulled(store: SingleTableStore, number: int, request_id: str) -> None:
    run = store.load("default", run_id(number))
    claim = pulled_run(number, request_id).claim
    store.commit(SaveRun(claimed(run).model_copy(update={"claim": claim, "ready_at": run.ready_at})))


def test_a_pulled_run_is_found_by_its_request_and_no_longer_in_its_queue(store: SingleTableStore) -> None:
    create(store, ready(1, 30), ready(2, 10), ready(3, 10, priority=0), ready(4, 0), queued_run(5, namespace="other"))
    for number, request_id in ((1, "r1"), (2, "r1"), (3, "r1"), (4, "r2")):
        pulled(store, number, request_id)
    assert store.claimed_runs("default", "r1") == tuple(map(run_id, (3, 2, 1)))
    assert store.claimed_runs("default", "r2") == (run_id(4),)
    assert store.claimed_runs("default", "r") == store.claimed_runs("other", "r1") == ()
    assert store.ready_runs(QUEUE, limit=10) == ()
    assert store.due_runs(until=at(60_000), limit=10) == (due(5, 0, "other"), *(due(number, 60_000) for number in range(1, 5)))


def test_a_pulled_run_is_its_requests_only_until_it_moves_on(store: SingleTableStore) -> None:
    create(store, ready(1, 0), ready(2, 0))
    pulled(store, 1, "r1")
    save(store, 1, due_at=at(90_000))
    assert store.claimed_runs("default", "r1") == (run_id(1),)
    save(store, 1, state=Queued(reason="recovery"), claim=None, ready_at=at(90_000))
    assert store.claimed_runs("default", "r1") == ()
    assert store.ready_runs(QUEUE, limit=10) == (run_id(2), run_id(1))


@pytest.mark.parametrize("state", [Scheduled(scheduled_at=at(0)), Completed()], ids=["scheduled", "completed"])
def test_a_run_that_is_not_queued_is_not_ready(store: SingleTableStore, state: RunState) -> None:
    create(store, ready(1, 0))
    save(store, 1, state=state)
    assert store.ready_runs(QUEUE, limit=10) == ()
    save(store, 1, state=Queued(reason="retry"))
    assert store.ready_runs(QUEUE, limit=10) == (run_id(1),)


def test_a_claimed_run_is_due_and_no_longer_ready(store: SingleTableStore) -> None:
    create(store, ready(1, 0))
    store.commit(SaveRun(claimed(store.load("default", run_id(1)))))
    assert store.ready_runs(QUEUE, limit=10) == ()
    assert store.due_runs(until=at(60_000), limit=10) == (due(1, 60_000),)


def test_due_runs_of_all_namespaces_come_by_time_up_to_the_moment_asked_for(store: SingleTableStore) -> None:
    create(store, ready(1, 30), ready(2, 10), queued_run(3, namespace="other", at=at(20)), ready(4, 31))
    assert store.due_runs(until=at(30), limit=10) == (due(2, 10), due(3, 20, "other"), due(1, 30))
    assert store.due_runs(until=at(30), limit=2) == (due(2, 10), due(3, 20, "other"))
    assert store.due_runs(until=at(9), limit=10) == ()
    assert store.due_runs(until=at(30), limit=0) == ()


def test_a_run_without_a_due_time_is_never_due(store: SingleTableStore) -> None:
    create(store, ready(1, 0))
    save(store, 1, due_at=None)
    assert store.due_runs(until=at(10**9), limit=10) == ()


def test_a_run_whose_due_time_moved_is_due_once(store: SingleTableStore) -> None:
    create(store, ready(1, 0))
    save(store, 1, due_at=at(50))
    assert store.due_runs(until=at(100), limit=10) == (due(1, 50),)


def test_more_due_runs_than_a_page_holds_are_all_found(store: SingleTableStore) -> None:
    create(store, *(ready(number, number) for number in range(25)))
    assert store.due_runs(until=at(100), limit=100) == tuple(due(number, number) for number in range(25))


def test_due_runs_of_several_shards_come_in_one_order(table: Table, clock: FakeClock) -> None:
    counting = CountingTable(table)
    store = SingleTableStore(counting, clock, SequentialEntropy(), due_shards=8)
    create(store, *(ready(number, (number * 7) % 40) for number in range(40)))
    expected = sorted((due((ms * 23) % 40, ms) for ms in range(40)), key=lambda one: one.due_at)
    assert [one.due_at for one in expected] == [at((int(one.run_id[3:]) * 7) % 40) for one in expected]
    counting.reset()
    assert store.due_runs(until=at(100), limit=100) == tuple(expected)
    assert counting.counts.queries == 8
    assert store.due_runs(until=at(100), limit=7) == tuple(expected[:7])
    one_shard = SingleTableStore(table, clock, SequentialEntropy())
    assert 0 < len(one_shard.due_runs(until=at(100), limit=100)) < 40


def test_raising_the_number_of_shards_loses_no_run(table: Table, clock: FakeClock) -> None:
    create(SingleTableStore(table, clock, SequentialEntropy()), ready(1, 1), ready(2, 2))
    wider = SingleTableStore(table, clock, SequentialEntropy(), due_shards=4)
    create(wider, ready(3, 3))
    assert wider.due_runs(until=at(100), limit=10) == (due(1, 1), due(2, 2), due(3, 3))
