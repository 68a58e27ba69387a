"""Answers that are lost after the write, and writes that fail before someone else makes them."""

from collections.abc import Callable, Sequence

import pytest

from aiki_push.adapters.storage.store import SingleTableStore
from aiki_push.adapters.storage.table import Table
from aiki_push.domain.changes import Change, CreateRun, PutWatcher, SaveEndpoint, SaveRun
from aiki_push.domain.run_states import Cancelled
from aiki_push.ports.store import CommitRefused, Refusal
from aiki_push.testing import FakeClock, FaultyTable, SequentialEntropy
from tests.contracts.faulty_commits import (
    CHILD,
    ONCE,
    RUN,
    Fails,
    every_commit,
    put_event_reference,
    put_slot,
    save,
    tell,
    watched,
)
from tests.contracts.stored_examples import child_ended, queued_run, watcher
from tests.contracts.test_store_endpoints import endpoint


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
    assert [refusal.change for refusal in refused.value.refusals] == [one for one in commit if not isinstance(one, PutWatcher)]


def test_an_endpoint_whose_answer_is_lost_is_saved(faulty: FaultyTable, faulty_store: SingleTableStore) -> None:
    faulty.after_write = Fails(ONCE)
    faulty_store.commit(SaveEndpoint(endpoint("a")))
    assert faulty_store.endpoint("default", "a") == endpoint("a")


def test_a_watcher_whose_answer_is_lost_is_there_once(faulty: FaultyTable, faulty_store: SingleTableStore) -> None:
    faulty.after_write = Fails(ONCE)
    faulty_store.commit(PutWatcher("default", CHILD, watcher(1)))
    assert [one.run_id for one in faulty_store.watchers("default", CHILD, limit=10)] == [RUN]


def test_a_removal_alone_whose_answer_is_lost_leaves_no_proof_and_is_refused(
    faulty: FaultyTable, faulty_store: SingleTableStore
) -> None:
    """Whoever reads again finds it done."""
    delete = watched(faulty_store)
    faulty.after_write = Fails(ONCE)
    with pytest.raises(CommitRefused) as refused:
        faulty_store.commit(delete)
    assert refused.value.refusals == (Refusal(delete, None),)
    assert faulty_store.watchers("default", CHILD, limit=1) == ()


def test_a_removal_whose_answer_is_lost_does_not_remove_the_watcher_that_was_put_since(
    faulty: FaultyTable, faulty_store: SingleTableStore
) -> None:
    delete = watched(faulty_store)
    faulty.after_write = Fails(ONCE, lambda: faulty_store.commit(PutWatcher("default", CHILD, watcher(1))))
    with pytest.raises(CommitRefused) as refused:
        faulty_store.commit(delete)
    assert refused.value.refusals == (Refusal(delete, *faulty_store.watchers("default", CHILD, limit=1)),)


@pytest.mark.parametrize("moved", [False, True], ids=["as it was left", "moved since"])
def test_an_end_that_was_told_and_whose_answer_is_lost_is_told_once_though_the_child_is_watched_again(
    table: Table, faulty: FaultyTable, faulty_store: SingleTableStore, moved: bool
) -> None:
    """The message proves it, whatever became of the header; that the watcher is there again does not speak against it."""
    faulty_store.commit(CreateRun(queued_run()))
    told = tell(faulty_store)
    other = SingleTableStore(table, FakeClock(), SequentialEntropy(first=1_000))

    def go_on() -> None:
        other.commit(PutWatcher("default", CHILD, watcher(1)))
        if moved:
            other.commit(SaveRun(other.load("default", RUN)))

    faulty.after_write = Fails(ONCE, go_on)
    faulty_store.commit(*told)
    assert faulty_store.inbox("default", RUN, after=0) == (child_ended(1, CHILD),)
    assert [one.run_id for one in faulty_store.watchers("default", CHILD, limit=10)] == [RUN]


def test_an_end_that_someone_else_told_meanwhile_is_not_taken_for_our_own(
    table: Table, faulty: FaultyTable, faulty_store: SingleTableStore
) -> None:
    faulty_store.commit(CreateRun(queued_run()))
    told = tell(faulty_store)
    other = SingleTableStore(table, FakeClock(), SequentialEntropy(first=1_000))
    faulty.before_write = Fails(ONCE, lambda: other.commit(*told))
    with pytest.raises(CommitRefused) as refused:
        faulty_store.commit(*told)
    assert [refusal.change for refusal in refused.value.refusals] == told
    assert faulty_store.inbox("default", RUN, after=0) == (child_ended(1, CHILD),)


def test_an_event_that_someone_else_sent_meanwhile_is_not_taken_for_our_own(
    table: Table, faulty: FaultyTable, faulty_store: SingleTableStore
) -> None:
    other = SingleTableStore(table, FakeClock(), SequentialEntropy(first=1_000))
    reference = put_event_reference(other)
    faulty.before_write = Fails(ONCE, lambda: other.commit(*reference))
    with pytest.raises(CommitRefused) as refused:
        faulty_store.commit(*reference)
    assert refused.value.found_event() is not None


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
