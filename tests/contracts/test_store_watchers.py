"""Watchers: who is to be told of a run's end, once."""

import pytest

from aiki_push.adapters.storage import keys
from aiki_push.adapters.storage.formats import watcher_item
from aiki_push.adapters.storage.store import SingleTableStore
from aiki_push.adapters.storage.table import Always, Put, Table
from aiki_push.domain.changes import CreateRun, DeleteWatcher, PutMessage, PutSlot, PutWatcher, SaveRun
from aiki_push.domain.errors import UnsupportedVersion
from aiki_push.domain.inbox import Watcher
from aiki_push.domain.values import RunId
from aiki_push.ports.store import CommitRefused, Refusal
from aiki_push.testing import CountingTable, Counts
from tests.contracts.stored_examples import child_ended, first_slot, queued_run, run_id, task_slot, watcher

CHILD = run_id(1)


def watch(store: SingleTableStore, *numbers: int, child: RunId = CHILD, namespace: str = "default") -> None:
    for number in numbers:
        store.commit(PutWatcher(namespace, child, watcher(number)))


def watching(store: SingleTableStore, *, child: RunId = CHILD, namespace: str = "default") -> list[RunId]:
    """The ids of all that watch the child."""
    return [one.run_id for one in store.watchers(namespace, child, limit=1_000)]


def the_watcher(store: SingleTableStore) -> Watcher:
    """The first one that watches the child."""
    return store.watchers("default", CHILD, limit=1)[0]


def test_a_watcher_is_read_as_it_was_written_and_with_an_etag(store: SingleTableStore) -> None:
    assert store.watchers("default", CHILD, limit=10) == ()
    watch(store, 2)
    (read,) = store.watchers("default", CHILD, limit=10)
    assert read == watcher(2, etag=read.etag)
    assert len(read.etag) == 16


def test_watchers_come_in_the_order_of_their_ids_whatever_the_order_they_were_written_in(store: SingleTableStore) -> None:
    watch(store, 5, 3, 20, 4)
    assert watching(store) == [run_id(number) for number in (3, 4, 5, 20)]


def test_no_more_watchers_are_read_than_asked_for_and_those_by_one_query(
    counted_store: SingleTableStore, counting: CountingTable
) -> None:
    watch(counted_store, *range(2, 12))
    counting.reset()
    for limit, read in ((0, 0), (1, 1), (9, 9), (10, 10), (11, 10)):
        found = counted_store.watchers("default", CHILD, limit=limit)
        assert [one.run_id for one in found] == [run_id(number) for number in range(2, 2 + read)]
        assert counting.reset() == Counts(queries=1 if limit else 0)


def test_a_watcher_that_is_put_again_is_one_watcher_with_another_etag(store: SingleTableStore) -> None:
    watch(store, 2)
    first = the_watcher(store)
    watch(store, 2)
    assert watching(store) == [run_id(2)]
    assert the_watcher(store).etag != first.etag


def test_a_watcher_is_deleted_with_the_etag_that_was_read_and_the_others_stay(store: SingleTableStore) -> None:
    watch(store, 2, 3)
    store.commit(DeleteWatcher("default", CHILD, the_watcher(store)))
    assert watching(store) == [run_id(3)]


def test_a_watcher_that_was_put_again_survives_a_stale_delete_and_nothing_of_that_commit_is_written(
    store: SingleTableStore,
) -> None:
    store.commit(CreateRun(queued_run(2)))
    watch(store, 2)
    stale, run = the_watcher(store), store.load("default", run_id(2))
    watch(store, 2)
    delete = DeleteWatcher("default", CHILD, stale)
    with pytest.raises(CommitRefused) as refused:
        store.commit(SaveRun(run), PutMessage("default", run.id, child_ended(1, CHILD)), delete)
    assert refused.value.refusals == (Refusal(delete, the_watcher(store)),)
    assert watching(store) == [run_id(2)]
    assert store.load("default", run.id) == run
    assert store.inbox("default", run.id, after=0) == ()


def test_a_delete_alone_is_refused_too_where_the_watcher_was_put_again(store: SingleTableStore) -> None:
    watch(store, 2)
    stale = the_watcher(store)
    watch(store, 2)
    with pytest.raises(CommitRefused) as refused:
        store.commit(DeleteWatcher("default", CHILD, stale))
    assert refused.value.refusals == (Refusal(DeleteWatcher("default", CHILD, stale), the_watcher(store)),)
    assert watching(store) == [run_id(2)]


@pytest.mark.parametrize("with_others", [False, True], ids=["alone", "with others"])
def test_a_watcher_that_is_not_there_cannot_be_deleted(store: SingleTableStore, with_others: bool) -> None:
    watch(store, 2)
    deleted = DeleteWatcher("default", CHILD, the_watcher(store))
    store.commit(deleted)
    others = [PutMessage("default", run_id(2), child_ended(1, CHILD))] if with_others else []
    with pytest.raises(CommitRefused) as refused:
        store.commit(*others, deleted)
    assert refused.value.refusals == (Refusal(deleted, None),)
    assert store.inbox("default", run_id(2), after=0) == ()


def test_a_watcher_that_was_never_read_cannot_be_deleted(store: SingleTableStore) -> None:
    watch(store, 2)
    with pytest.raises(CommitRefused):
        store.commit(DeleteWatcher("default", CHILD, watcher(2)))
    assert watching(store) == [run_id(2)]


def test_the_end_of_a_child_is_told_and_its_watcher_deleted_in_one_commit(store: SingleTableStore) -> None:
    store.commit(CreateRun(queued_run(2)))
    watch(store, 2, 3)
    run = store.load("default", run_id(2)).model_copy(update={"inbox_seq": 1})
    store.commit(
        SaveRun(run),
        PutMessage("default", run.id, child_ended(1, CHILD)),
        DeleteWatcher("default", CHILD, the_watcher(store)),
    )
    assert store.load("default", run.id).inbox_seq == 1
    assert store.inbox("default", run.id, after=0) == (child_ended(1, CHILD),)
    assert watching(store) == [run_id(3)]


def test_ends_for_one_watcher_are_told_in_one_commit(store: SingleTableStore) -> None:
    store.commit(CreateRun(queued_run(2)))
    children = [run_id(number) for number in range(10, 59)]
    for child in children:
        watch(store, 2, child=child)
    store.commit(
        SaveRun(store.load("default", run_id(2))),
        *(PutMessage("default", run_id(2), child_ended(seq, child)) for seq, child in enumerate(children, 1)),
        *(DeleteWatcher("default", child, *store.watchers("default", child, limit=1)) for child in children),
    )
    assert [message.key for message in store.inbox("default", run_id(2), after=0)] == children
    assert [watching(store, child=child) for child in children] == [[]] * len(children)


def test_a_child_is_started_and_watched_in_one_commit_or_not_at_all(store: SingleTableStore) -> None:
    parent, child = queued_run(2), queued_run(1)
    store.commit(CreateRun(parent))

    def start(position: int) -> None:
        slot = PutSlot("default", parent.id, task_slot(position))
        store.commit(slot, CreateRun(child), PutWatcher("default", child.id, watcher(2)))

    start(0)
    assert watching(store) == [parent.id]
    store.commit(DeleteWatcher("default", child.id, the_watcher(store)))
    with pytest.raises(CommitRefused) as refused:
        start(1)
    assert [refusal.change for refusal in refused.value.refusals] == [CreateRun(child)]
    assert watching(store) == []


@pytest.mark.parametrize("with_log", [False, True], ids=["all in the tail", "with a log"])
def test_watchers_are_no_part_of_a_runs_contents_and_its_payloads_no_watchers(
    table: Table, store: SingleTableStore, with_log: bool
) -> None:
    run = queued_run()
    log = [PutSlot("default", run.id, first_slot(run)), PutMessage("default", run.id, child_ended(1, run_id(5)))]
    store.commit(CreateRun(run), *(log if with_log else ()))
    before = store.load_contents("default", run.id, max_bytes=100_000)
    payload = keys.payload("default", run.id, "f" * 64)
    table.write([Put({"PK": payload.pk, "SK": payload.sk, "v": 1, "d": b"no zlib"}, Always())], token="t")
    watch(store, 0, 2, 99)
    assert store.load_contents("default", run.id, max_bytes=100_000) == before
    assert store.log("default", run.id, after=-1, max_bytes=100_000).slots == before.slots
    assert store.last_slot("default", run.id) == (first_slot(run) if with_log else None)
    assert store.inbox("default", run.id, after=0) == before.messages
    assert watching(store) == [run_id(0), run_id(2), run_id(99)]


def test_watchers_of_other_runs_and_namespaces_are_not_seen(store: SingleTableStore) -> None:
    watch(store, 2)
    watch(store, 3, child=run_id(4))
    watch(store, 5, namespace="other")
    assert watching(store) == [run_id(2)]
    assert watching(store, child=run_id(4)) == [run_id(3)]
    assert watching(store, namespace="other") == [run_id(5)]


@pytest.mark.parametrize("name", ["a#W#b", "#", "%23", "H", ""], ids=ascii)
def test_no_id_of_a_run_can_forge_the_watcher_of_another(store: SingleTableStore, name: str) -> None:
    forged = RunId(f"{CHILD}#W#{name}")
    store.commit(PutWatcher("default", forged, watcher(2)))
    assert watching(store) == []
    assert watching(store, child=forged) == [run_id(2)]


def test_a_watcher_written_by_a_newer_release_is_refused_by_name(table: Table, store: SingleTableStore) -> None:
    table.write([Put({**watcher_item("default", CHILD, watcher(2), "e"), "v": 2}, Always())], token="t")
    with pytest.raises(UnsupportedVersion, match=f"RUN#default#{CHILD} W#{run_id(2)}"):
        store.watchers("default", CHILD, limit=1)
