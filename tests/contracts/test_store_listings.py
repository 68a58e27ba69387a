"""Listing runs: by workflow, by state, all of them; the newest first, page by page."""

from collections.abc import Callable, Iterator

import pytest

from aiki_push.adapters.storage.store import SingleTableStore
from aiki_push.adapters.storage.table import Item, Page, Query, Table
from aiki_push.domain.changes import CreateRun, SaveRun
from aiki_push.domain.run import Run
from aiki_push.domain.run_states import (
    STATUSES,
    Cancelled,
    Completed,
    Failed,
    Queued,
    Running,
    RunState,
    Scheduled,
    SelfCause,
    Stalled,
    Status,
)
from aiki_push.domain.values import RunId, TimestampMs
from aiki_push.ports.store import ListedRun, Listing, ListPlace
from aiki_push.testing import FAKE_NOW, CountingTable, Counts, FakeClock, SequentialEntropy
from tests.contracts.stored_examples import queued_run, run_id

ALL = Listing("default")


def created_at(run: Run, ms: int) -> Run:
    return run.model_copy(update={"created_at": TimestampMs(FAKE_NOW + ms)})


def create(store: SingleTableStore, *runs: Run) -> None:
    for run in runs:
        store.commit(CreateRun(run))


def place(number: int, ms: int) -> ListPlace:
    return ListPlace(TimestampMs(FAKE_NOW + ms), run_id(number))


def entry(number: int, ms: int, version: str = "1.0.0") -> ListedRun:
    return ListedRun(place(number, ms), version)


def ids(entries: tuple[ListedRun, ...]) -> list[RunId]:
    return [one.place.run_id for one in entries]


def enter(store: SingleTableStore, number: int, state: RunState) -> None:
    store.commit(SaveRun(store.load("default", run_id(number)).model_copy(update={"state": state})))


def pages(
    store: SingleTableStore, listing: Listing, limit: int, between: Callable[[int], None] = lambda _: None
) -> Iterator[RunId]:
    """Every run of a listing; `between` is called after each page with its number."""
    before: ListPlace | None = None
    number = 0
    while entries := store.newest_runs(listing, before=before, limit=limit):
        yield from ids(entries)
        before = entries[-1].place
        number += 1
        between(number)


def test_runs_are_listed_by_time_of_creation_then_id_the_newest_first(store: SingleTableStore) -> None:
    times = {1: 5, 2: 7, 3: 5, 4: 0, 5: 7, 6: 6}
    create(store, *(created_at(queued_run(number), ms) for number, ms in times.items()))
    expected = (entry(5, 7), entry(2, 7), entry(6, 6), entry(3, 5), entry(1, 5), entry(4, 0))
    for listing in (ALL, Listing("default", workflow="orders"), Listing("default", status="queued")):
        assert store.newest_runs(listing, before=None, limit=10) == expected
        assert store.newest_runs(listing, before=None, limit=6) == expected
        assert store.newest_runs(listing, before=None, limit=2) == expected[:2]
        assert store.newest_runs(listing, before=place(6, 6), limit=2) == expected[3:5]
        assert store.newest_runs(listing, before=place(2, 7), limit=10) == expected[2:]
        assert store.newest_runs(listing, before=place(4, 0), limit=10) == ()


def test_a_place_need_not_be_that_of_a_run(store: SingleTableStore) -> None:
    create(store, *(created_at(queued_run(number), number) for number in (1, 3)))
    assert ids(store.newest_runs(ALL, before=place(2, 2), limit=10)) == [run_id(1)]
    assert ids(store.newest_runs(ALL, before=place(0, 10**9), limit=10)) == [run_id(3), run_id(1)]


def test_a_listing_holds_one_namespace_and_where_asked_for_one_workflow(store: SingleTableStore) -> None:
    refunds = queued_run(2).model_copy(update={"workflow": "refunds", "version": "2"})
    create(
        store, queued_run(1), refunds, queued_run(3, namespace="other"), queued_run(4).model_copy(update={"workflow": "order"})
    )
    assert ids(store.newest_runs(ALL, before=None, limit=10)) == [run_id(4), run_id(2), run_id(1)]
    assert store.newest_runs(Listing("default", workflow="refunds"), before=None, limit=10) == (entry(2, 0, "2"),)
    assert ids(store.newest_runs(Listing("default", workflow="orders"), before=None, limit=10)) == [run_id(1)]
    assert ids(store.newest_runs(Listing("other"), before=None, limit=10)) == [run_id(3)]
    assert store.newest_runs(Listing("other", workflow="refunds"), before=None, limit=10) == ()
    assert store.newest_runs(Listing("default", workflow="nobody"), before=None, limit=10) == ()


ENDED: dict[int, RunState] = {
    1: Stalled(reason="diverged"),
    2: Completed(),
    3: Failed(cause=SelfCause()),
    4: Cancelled(),
}


@pytest.mark.parametrize("status", STATUSES)
def test_a_listing_by_status_leaves_out_the_runs_of_other_groups(store: SingleTableStore, status: Status) -> None:
    create(store, *(queued_run(number) for number in range(1, 7)))
    for number, state in ENDED.items():
        enter(store, number, state)
    enter(store, 5, Running())
    ended = [number for number, state in ENDED.items() if state.status == status]
    expected = [run_id(number) for number in ended or (6, 5)]
    assert ids(store.newest_runs(Listing("default", status=status), before=None, limit=10)) == expected
    assert len(store.newest_runs(ALL, before=None, limit=10)) == 6


def test_a_run_keeps_its_place_whatever_becomes_of_it(store: SingleTableStore) -> None:
    create(store, *(created_at(queued_run(number), number) for number in (1, 2, 3)))
    before = store.newest_runs(ALL, before=None, limit=10)
    states: list[RunState] = [
        Running(),
        Queued(reason="recovery"),
        Stalled(reason="diverged"),
        Queued(reason="redelivery"),
        Completed(),
    ]
    for state in states:
        enter(store, 2, state)
        assert store.newest_runs(ALL, before=None, limit=10) == before
        assert store.newest_runs(Listing("default", workflow="orders"), before=None, limit=10) == before


@pytest.mark.parametrize("listing", [ALL, Listing("default", workflow="orders")], ids=["all", "workflow"])
@pytest.mark.parametrize("shards", [1, 3])
def test_pages_hold_every_run_once_even_while_runs_change_and_others_are_started(
    table: Table, clock: FakeClock, listing: Listing, shards: int
) -> None:
    store = SingleTableStore(table, clock, SequentialEntropy(), list_shards=shards)
    create(store, *(created_at(queued_run(number), number // 3) for number in range(1, 61)))
    states: list[RunState] = [Running(), Completed(), Stalled(reason="diverged"), Scheduled(scheduled_at=FAKE_NOW), Cancelled()]

    def change(page: int) -> None:
        create(store, created_at(queued_run(100 + page), 1_000 + page))
        for number in range(1, 61):
            if (number + page) % 3 == 0:
                enter(store, number, states[(number + page) % len(states)])

    assert [*pages(store, listing, 7, change)] == [run_id(number) for number in range(60, 0, -1)]


def test_a_run_that_is_found_in_two_groups_is_listed_once(store: SingleTableStore, table: Table) -> None:
    """Indexes lag each on its own: while a run changes its group it may be seen in both."""
    create(store, *(created_at(queued_run(number), number) for number in (1, 2, 3)))
    one_page = store.newest_runs(ALL, before=None, limit=10)

    class Lagging(CountingTable):
        """Shows the completed group after run 2 has entered it, and the active one as it was before."""

        def query(self, query: Query, after: Item | None = None) -> Page:
            page = super().query(query, after)
            if query.pk == "default#active#0":
                enter(store, 2, Completed())
            return page

    lagging = SingleTableStore(Lagging(table), FakeClock(), SequentialEntropy(first=1_000))
    assert lagging.newest_runs(ALL, before=None, limit=10) == one_page


def test_a_page_is_one_query_a_partition(table: Table, clock: FakeClock) -> None:
    counting = CountingTable(table)
    store = SingleTableStore(counting, clock, SequentialEntropy(), list_shards=4)
    create(store, *(created_at(queued_run(number), number) for number in range(40)))
    for listing, partitions in (
        (ALL, 20),
        (Listing("default", status="running"), 4),
        (Listing("default", status="failed"), 4),
        (Listing("default", workflow="orders"), 4),
        (Listing("default", workflow="orders", status="failed"), 4),
    ):
        counting.reset()
        store.newest_runs(listing, before=None, limit=10)
        assert counting.reset() == Counts(queries=partitions)


def test_raising_the_number_of_shards_hides_no_run(table: Table, clock: FakeClock) -> None:
    create(SingleTableStore(table, clock, SequentialEntropy()), *(created_at(queued_run(number), number) for number in (1, 2)))
    wider = SingleTableStore(table, clock, SequentialEntropy(), list_shards=4)
    create(wider, *(created_at(queued_run(number), number) for number in range(3, 9)))
    for listing in (ALL, Listing("default", workflow="orders")):
        assert [*pages(wider, listing, 3)] == [run_id(number) for number in range(8, 0, -1)]
