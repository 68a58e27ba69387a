"""Lost answers, throttling and outages."""

from collections.abc import Callable, Sequence

import pytest

from aiki_push.adapters.storage.retrying import RETRY_BUDGET_MS
from aiki_push.adapters.storage.store import SingleTableStore
from aiki_push.adapters.storage.table import Key, Query, Table, Write
from aiki_push.domain.changes import Change, CreateRun, PutMessage, PutReference, PutSlot, SaveEndpoint, SaveRun
from aiki_push.domain.errors import StorageUnavailable
from aiki_push.domain.run_states import Cancelled
from aiki_push.ports.store import CommitRefused, Listing, Queue
from aiki_push.testing import FakeClock, FaultyTable, SequentialEntropy
from tests.contracts.stored_examples import claimed, event, pulled_run, queued_run, run_id, task_slot
from tests.contracts.test_store_endpoints import endpoint
from tests.contracts.test_store_references import naming, referred

RUN = run_id(1)


class Fails:
    """Raises at the calls with these numbers (the first is 0), after `act` if there is one; `calls` counts all."""

    def __init__(self, calls: range, act: Callable[[], None] | None = None) -> None:
        self._failing = calls
        self._act = act
        self.calls = 0

    def __call__(self, _: Sequence[Write] | Key | Query) -> None:
        number, self.calls = self.calls, self.calls + 1
        if number in self._failing:
            if self._act is not None:
                self._act()
            raise StorageUnavailable("injected")


ONCE = range(1)
ALWAYS = range(10**6)


def create(_: SingleTableStore) -> Sequence[Change]:
    return [CreateRun(queued_run(2))]


def save(store: SingleTableStore) -> Sequence[Change]:
    return [SaveRun(claimed(store.load("default", RUN)))]


def start_with_reference(_: SingleTableStore) -> Sequence[Change]:
    run = referred(2)
    return [CreateRun(run), PutReference(naming(run))]


def put_slot(_: SingleTableStore) -> Sequence[Change]:
    return [PutSlot("default", RUN, task_slot(0))]


def put_message(_: SingleTableStore) -> Sequence[Change]:
    return [PutMessage("default", RUN, event(1))]


def transaction(store: SingleTableStore) -> Sequence[Change]:
    return [*save(store), *put_slot(store), *put_message(store), *create(store)]


every_commit = pytest.mark.parametrize("changes", [create, save, start_with_reference, put_slot, put_message, transaction])


@every_commit
@pytest.mark.parametrize("further_failures", [0, 3])
def test_a_commit_whose_answer_is_lost_succeeds_once(
    table: Table,
    faulty: FaultyTable,
    faulty_store: SingleTableStore,
    changes: Callable[[SingleTableStore], Sequence[Change]],
    further_failures: int,
) -> None:
    faulty_store.commit(CreateRun(queued_run()))
    commit = changes(faulty_store)
    faulty.before_write = writes = Fails(range(1, 1 + further_failures))
    faulty.after_write = Fails(ONCE)
    faulty_store.commit(*commit)
    assert writes.calls == 2 + further_failures
    with pytest.raises(CommitRefused) as refused:
        SingleTableStore(table, FakeClock(), SequentialEntropy(first=1_000)).commit(*commit)
    assert [refusal.change for refusal in refused.value.refusals] == commit


def test_an_endpoint_whose_answer_is_lost_is_saved(faulty: FaultyTable, faulty_store: SingleTableStore) -> None:
    faulty.after_write = Fails(ONCE)
    faulty_store.commit(SaveEndpoint(endpoint("a")))
    assert faulty_store.endpoint("default", "a") == endpoint("a")


def test_a_commit_that_landed_is_a_success_though_someone_has_moved_the_run_since(
    table: Table, faulty: FaultyTable, faulty_store: SingleTableStore
) -> None:
    """The slot is still there and proves that the header was written with it."""
    faulty_store.commit(CreateRun(queued_run()))
    other = SingleTableStore(table, FakeClock(), SequentialEntropy(first=1_000))

    def cancel() -> None:
        other.commit(SaveRun(other.load("default", RUN).model_copy(update={"state": Cancelled()})))

    faulty.after_write = Fails(ONCE, cancel)
    faulty_store.commit(*save(faulty_store), *put_slot(faulty_store))
    assert faulty_store.load("default", RUN).state == Cancelled()


def test_a_save_that_failed_and_was_then_overtaken_is_refused(
    table: Table, faulty: FaultyTable, faulty_store: SingleTableStore
) -> None:
    faulty_store.commit(CreateRun(queued_run()))
    other = SingleTableStore(table, FakeClock(), SequentialEntropy(first=1_000))
    change = save(faulty_store)
    faulty.before_write = Fails(ONCE, lambda: other.commit(SaveRun(other.load("default", RUN))))
    with pytest.raises(CommitRefused):
        faulty_store.commit(*change)


def test_an_equal_slot_of_an_earlier_commit_is_not_taken_for_our_own(faulty: FaultyTable, faulty_store: SingleTableStore) -> None:
    faulty_store.commit(*put_slot(faulty_store))
    faulty.before_write = Fails(range(2))
    with pytest.raises(CommitRefused):
        faulty_store.commit(*put_slot(faulty_store))


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
    faulty_store.commit(CreateRun(pulled_run(9, "r1")))
    expected = read(faulty_store)
    assert expected
    faulty.before_read = Fails(range(3))
    assert read(faulty_store) == expected
    faulty.before_read = Fails(ALWAYS)
    with pytest.raises(StorageUnavailable):
        read(faulty_store)
