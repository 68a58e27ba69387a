"""Listing runs by their filters, page by page."""

import random
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest

from aiki_push.adapters.storage import keys
from aiki_push.adapters.storage.store import SingleTableStore
from aiki_push.adapters.storage.table import Always, Delete, Put, Table
from aiki_push.domain.changes import CreateRun, SaveRun
from aiki_push.domain.errors import InvalidRequest
from aiki_push.domain.run_states import STATUSES, Cancelled, Completed, Running, RunState
from aiki_push.domain.values import RunId, TimestampMs
from aiki_push.ports.api.runs import GetRun, ListRuns, RunList, RunView, StartRun
from aiki_push.server.service import Server
from aiki_push.testing import FAKE_NOW, CountingTable, Counts, FakeClock
from tests.contracts.stored_examples import queued_run, run_id
from tests.integration.owners import FINISH, Owner, claim
from tests.local_system import NAMESPACE, LocalSystem
from tests.unit.domain.run_examples import EXAMPLES

MANY = 10_000


@pytest.fixture
def system(table: Table) -> LocalSystem:
    return LocalSystem(table, clock=FakeClock())


def start(system: LocalSystem, **fields: Any) -> RunView:
    return system.server.call(NAMESPACE, StartRun.model_validate({"workflow": "w", "version": "1", **fields}))


def listed(system: LocalSystem, **filters: Any) -> RunList:
    return system.server.call(NAMESPACE, ListRuns.model_validate(filters))


def ids(page: RunList) -> list[RunId]:
    return [run.id for run in page.runs]


def pages(system: LocalSystem, between: Callable[[], object] = lambda: None, /, **filters: Any) -> Iterator[RunList]:
    """Every page of a list; `between` is called after each."""
    cursor: str | None = None
    while True:
        page = listed(system, **filters, cursor=cursor)
        yield page
        if page.next_cursor is None:
            return
        cursor = page.next_cursor
        between()


def all_ids(system: LocalSystem, **filters: Any) -> list[RunId]:
    return [run_id for page in pages(system, **filters) for run_id in ids(page)]


def seed(system: LocalSystem, numbers: range, **fields: object) -> list[RunId]:
    """Runs by single writes, three a millisecond; their ids, the newest first."""
    for number in numbers:
        created = {"created_at": TimestampMs(FAKE_NOW + number // 3), **fields}
        system.store.commit(CreateRun(queued_run(number).model_copy(update=created)))
    return [run_id(number) for number in reversed(numbers)]


def enter(system: LocalSystem, number: int, state: RunState) -> None:
    system.store.commit(SaveRun(system.run(run_id(number)).model_copy(update={"state": state})))


def test_a_list_tells_of_each_run_what_its_header_says(system: LocalSystem) -> None:
    view = start(system, reference={"id": "order 7"}, options={"pool": "eu", "priority": 1})
    owner = Owner(system, claim(system, view.id))
    page = listed(system)
    assert [run.model_dump() for run in page.runs] == [
        system.server.call(NAMESPACE, GetRun(run_id=view.id)).model_dump(exclude={"output", "error", "explanation"})
    ]
    assert page.runs[0].claim is not None
    owner.send(owner.checkpoint(end=FINISH))
    assert [run.state for run in listed(system).runs] == [Completed()]


def test_filters_together_leave_what_matches_all_of_them(system: LocalSystem) -> None:
    runs = {
        (workflow, version): start(system, workflow=workflow, version=version).id for workflow in "vw" for version in ("1", "2")
    }
    claim(system, runs["w", "2"])
    newest_first = sorted(runs.values(), reverse=True)
    assert ids(listed(system)) == newest_first
    assert ids(listed(system, workflow="w")) == [run for run in newest_first if run in (runs["w", "1"], runs["w", "2"])]
    assert ids(listed(system, version="1")) == [run for run in newest_first if run in (runs["v", "1"], runs["w", "1"])]
    assert ids(listed(system, workflow="v", version="2")) == [runs["v", "2"]]
    assert ids(listed(system, status="running")) == ids(listed(system, workflow="w", status="running")) == [runs["w", "2"]]
    assert ids(listed(system, workflow="w", version="1", status="queued")) == [runs["w", "1"]]
    for nothing in ({"workflow": "x"}, {"version": "3"}, {"workflow": "v", "status": "running"}, {"status": "failed"}):
        assert listed(system, **nothing) == RunList(runs=())
    assert system.server.call("another", ListRuns()) == RunList(runs=())


def test_every_status_is_a_filter(system: LocalSystem) -> None:
    seed(system, range(3 * len(STATUSES)))
    for number in range(3 * len(STATUSES)):
        enter(system, number, EXAMPLES[STATUSES[number % len(STATUSES)]])
    expected = {status: [run_id(place + len(STATUSES) * time) for time in (2, 1, 0)] for place, status in enumerate(STATUSES)}
    assert {status: all_ids(system, status=status, limit=7) for status in STATUSES} == expected
    assert {
        status: all_ids(system, status=status, workflow="orders", version="1.0.0", limit=7) for status in STATUSES
    } == expected


def test_a_reference_is_looked_up(system: LocalSystem) -> None:
    run = start(system, reference={"id": "order 7"})
    start(system, version="2", reference={"id": "order 7"})
    assert ids(listed(system, workflow="w", version="1", reference="order 7")) == [run.id]
    assert ids(listed(system, workflow="w", version="1", reference="order 7", status="queued")) == [run.id]
    assert ids(listed(system, workflow="w", version="1", reference="order 7", status="running")) == []
    assert ids(listed(system, workflow="w", version="1", reference="order 8")) == []
    system.table.write([Delete(keys.header(NAMESPACE, run.id))], token="t")
    assert listed(system, workflow="w", version="1", reference="order 7") == RunList(runs=())


@pytest.mark.parametrize("filters", [{}, {"workflow": "w"}, {"version": "1"}])
def test_a_reference_without_its_version_names_the_field(system: LocalSystem, filters: dict[str, str]) -> None:
    with pytest.raises(InvalidRequest) as refused:
        listed(system, **filters, reference="order 7")
    message = "needs workflow and version: a reference is one of a kind within a version only"
    assert refused.value.fields == {"errors": [{"field": "reference", "message": message}]}


def test_a_cursor_is_good_for_its_filters_only_and_a_forged_one_for_none(system: LocalSystem) -> None:
    seed(system, range(6))
    filters = {"workflow": "orders", "version": "1.0.0", "status": "queued"}
    cursor = listed(system, **filters, limit=2).next_cursor
    assert cursor is not None
    assert ids(listed(system, **filters, limit=3, cursor=cursor)) == [run_id(3), run_id(2), run_id(1)]
    others: list[dict[str, Any]] = [
        {},
        {**filters, "version": "2"},
        {**filters, "workflow": "order"},
        {**filters, "status": "running"},
        {**filters, "status": None},
        {**filters, "reference": "order 7"},
    ]
    real_history = system.context.seals.seal("history", f"{NAMESPACE}#{run_id(1)}", 0)
    forged = [(filters, text) for text in ("e30.e30", "x", cursor[:-2] + "AA", real_history)]
    for asked, text in [*((other, cursor) for other in others), *forged]:
        with pytest.raises(InvalidRequest) as refused:
            listed(system, **asked, cursor=text)
        message = "was not made by this server for a list with these filters; leave it out to begin with the newest"
        assert refused.value.fields == {"errors": [{"field": "cursor", "message": message}]}
    with pytest.raises(InvalidRequest):
        system.server.call("another", ListRuns.model_validate({**filters, "cursor": cursor}))


def test_a_filtered_page_may_be_empty_and_still_lead_to_the_rest(system: LocalSystem) -> None:
    seed(system, range(25))
    enter(system, 3, Running())
    found = [(ids(page), page.next_cursor is not None) for page in pages(system, workflow="orders", status="running", limit=1)]
    assert found == [([], True), ([], True), ([run_id(3)], True), ([], False)]


@pytest.mark.parametrize("filters", [{}, {"workflow": "orders"}], ids=["all", "workflow"])
def test_a_run_that_is_gone_or_cannot_be_read_is_passed_over(system: LocalSystem, filters: dict[str, str]) -> None:
    newest_first = seed(system, range(4))
    damaged = system.table.get(keys.header(NAMESPACE, run_id(2)))
    assert damaged is not None
    system.table.write([Put({**damaged, "d": "no JSON"}, Always())], token="t")
    assert all_ids(system, **filters, limit=1) == [run for run in newest_first if run != run_id(2)]


class TestTenThousandRuns:
    """Seeded by single writes into memory, and read as a client would."""

    @pytest.fixture
    def counting(self) -> CountingTable:
        return CountingTable(LocalSystem().table)

    @pytest.fixture
    def many(self, counting: CountingTable) -> LocalSystem:
        system = LocalSystem(counting, clock=FakeClock())
        seed(system, range(MANY))
        counting.reset()
        return system

    @pytest.mark.parametrize(
        ("filters", "queries"),
        [({}, 5), ({"workflow": "orders"}, 1), ({"workflow": "orders", "version": "1.0.0"}, 1), ({"status": "queued"}, 1)],
        ids=str,
    )
    def test_are_each_listed_once_by_the_same_few_reads_a_page(
        self, many: LocalSystem, counting: CountingTable, filters: dict[str, str], queries: int
    ) -> None:
        found: list[RunId] = []
        reads: list[Counts] = []
        for page in pages(many, **filters, limit=100):
            found += ids(page)
            reads.append(counting.reset())
        assert found == [run_id(number) for number in reversed(range(MANY))]
        assert reads == [Counts(queries=queries, batch_gets=1)] * 100 + [Counts(queries=queries)]

    def test_are_listed_by_reads_that_grow_with_the_shards_alone(self, many: LocalSystem, counting: CountingTable) -> None:
        sharded = SingleTableStore(counting, many.clock, many.entropy, list_shards=8)
        server = Server(replace(many.context, store=sharded))
        page = server.call(NAMESPACE, ListRuns(limit=100))
        assert (len(page.runs), counting.reset()) == (100, Counts(queries=40, batch_gets=1))

    def test_that_do_not_match_cost_a_bounded_number_of_reads(self, many: LocalSystem, counting: CountingTable) -> None:
        enter(many, 5_000, Running())
        counting.reset()
        found: list[RunId] = []
        for page in pages(many, workflow="orders", status="running", limit=100):
            found += ids(page)
            counts = counting.reset()
            assert counts.queries <= 10
            assert counts.batch_gets <= 10
        assert found == [run_id(5_000)]

    def test_of_another_version_cost_no_reads_of_headers(self, many: LocalSystem, counting: CountingTable) -> None:
        for page in pages(many, workflow="orders", version="2", limit=100):
            assert ids(page) == []
            assert counting.reset().batch_gets == 0

    @pytest.mark.parametrize("filters", [{}, {"workflow": "orders"}], ids=["all", "workflow"])
    def test_are_each_listed_once_while_a_third_of_them_changes(self, many: LocalSystem, filters: dict[str, str]) -> None:
        chance = random.Random(7)
        started = iter(range(MANY, 2 * MANY))

        def change() -> None:
            for number in chance.sample(range(MANY), 40):
                enter(many, number, chance.choice([Completed(), Running(), Cancelled(), EXAMPLES["stalled"]]))
            seed(many, range(number := next(started), number + 1))

        found = [run_id for page in pages(many, change, **filters, limit=100) for run_id in ids(page)]
        assert found == [run_id(number) for number in reversed(range(MANY))]

    def test_in_one_status_that_stay_in_it_are_each_listed_once_while_others_leave_it(self, many: LocalSystem) -> None:
        leaving = iter(range(0, MANY, 2))

        def change() -> None:
            for _ in range(40):
                if (number := next(leaving, None)) is not None:
                    enter(many, number, Completed())

        found = [run_id for page in pages(many, change, status="queued", limit=100) for run_id in ids(page)]
        staying = [run_id(number) for number in reversed(range(1, MANY, 2))]
        assert [one for one in found if one in {*staying}] == staying
        assert len(found) == len({*found})
