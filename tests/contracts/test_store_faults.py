"""Throttling and outages."""

from collections.abc import Callable, Sequence

import pytest

from aiki_push.adapters.storage.retrying import RETRY_BUDGET_MS
from aiki_push.adapters.storage.store import SingleTableStore
from aiki_push.domain.changes import Change, CreateRun, PutMessage, PutReference, PutSlot, PutWatcher, SaveEndpoint
from aiki_push.domain.errors import StorageUnavailable
from aiki_push.ports.store import Listing, Queue
from aiki_push.testing import FakeClock, FaultyTable
from tests.contracts.faulty_commits import ALWAYS, RUN, Fails, every_commit
from tests.contracts.stored_examples import event, pulled_run, queued_run, task_slot, watcher
from tests.contracts.test_store_endpoints import endpoint
from tests.contracts.test_store_references import naming, referred


@every_commit
def test_a_busy_table_is_waited_for(
    faulty: FaultyTable,
    faulty_store: SingleTableStore,
    clock: FakeClock,
    changes: Callable[[SingleTableStore], Sequence[Change]],
) -> None:
    faulty_store.commit(CreateRun(queued_run()))
    commit = changes(faulty_store)
    faulty.before_write = writes = Fails(range(4))
    faulty_store.commit(*commit)
    assert writes.calls == 5
    assert 0 < clock.slept_ms <= 25 + 50 + 100 + 200 + 4


def test_a_table_that_stays_busy_is_given_up_within_the_budget(
    faulty: FaultyTable, faulty_store: SingleTableStore, clock: FakeClock
) -> None:
    faulty.before_write = writes = Fails(ALWAYS)
    with pytest.raises(StorageUnavailable, match=r"injected; gave up after \d+ attempts") as failed:
        faulty_store.commit(CreateRun(queued_run()))
    assert failed.value.fields == {"attempts": writes.calls}
    assert RETRY_BUDGET_MS - 1_001 <= clock.slept_ms <= RETRY_BUDGET_MS


def test_nothing_is_written_by_a_commit_that_never_reached_the_table(faulty: FaultyTable, faulty_store: SingleTableStore) -> None:
    faulty.before_write = Fails(ALWAYS)
    with pytest.raises(StorageUnavailable):
        faulty_store.commit(CreateRun(queued_run()), PutSlot("default", RUN, task_slot(0)))
    assert faulty_store.last_slot("default", RUN) is None


READS: tuple[Callable[[SingleTableStore], object], ...] = (
    lambda store: store.load("default", RUN),
    lambda store: store.load_contents("default", RUN, max_bytes=1),
    lambda store: store.log("default", RUN, after=-1, max_bytes=1),
    lambda store: store.last_slot("default", RUN),
    lambda store: store.inbox("default", RUN, after=0),
    lambda store: store.watchers("default", RUN, limit=1),
    lambda store: store.due_runs(until=queued_run().created_at, limit=1),
    lambda store: store.ready_runs(Queue("default", "orders", "1.0.0", None), limit=1),
    lambda store: store.ready_runs(Queue("default", "orders", "1.0.0", None), Queue("default", "refunds", "2", None), limit=1),
    lambda store: store.due_offers(Queue("default", "orders", "1.0.0", None), until=queued_run().created_at, limit=1),
    lambda store: store.claimed_runs("default", "r1"),
    lambda store: store.newest_runs(Listing("default"), before=None, limit=1),
    lambda store: store.load_many("default", [RUN]),
    lambda store: store.reference("default", "orders", "1.0.0", "order 7"),
    lambda store: store.endpoint("default", "a"),
    lambda store: store.endpoints("default"),
)


@pytest.mark.parametrize("read", READS)
def test_every_read_waits_for_a_busy_table_and_gives_up_in_the_end(
    faulty: FaultyTable, faulty_store: SingleTableStore, read: Callable[[SingleTableStore], object]
) -> None:
    faulty_store.commit(CreateRun(queued_run()), PutSlot("default", RUN, task_slot(0)), PutMessage("default", RUN, event(1)))
    faulty_store.commit(SaveEndpoint(endpoint("a")), PutReference(naming(referred())))
    faulty_store.commit(CreateRun(pulled_run(9, "r1")), PutWatcher("default", RUN, watcher(2)))
    expected = read(faulty_store)
    assert expected
    faulty.before_read = Fails(range(3))
    assert read(faulty_store) == expected
    faulty.before_read = Fails(ALWAYS)
    with pytest.raises(StorageUnavailable):
        read(faulty_store)
