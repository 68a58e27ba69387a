"""Headers: load, create, save, and commits of several changes."""

import pytest

from aiki_push.adapters.storage.store import SingleTableStore
from aiki_push.domain.changes import CreateRun, PutMessage, PutSlot, SaveRun
from aiki_push.domain.errors import NotFound, PayloadTooLarge
from aiki_push.domain.log_records import LogSlot
from aiki_push.domain.run import Offer, Run
from aiki_push.domain.values import TimestampMs
from aiki_push.ports.store import CommitRefused, Refusal, RunContents
from tests.contracts.stored_examples import claimed, event, first_slot, queued_run, run_id, task_slot


def without_etag(run: Run) -> Run:
    return run.model_copy(update={"etag": ""})


def created(store: SingleTableStore, number: int = 1) -> Run:
    store.commit(CreateRun(queued_run(number)))
    return store.load("default", run_id(number))


def test_a_created_run_is_loaded_as_it_was_authored_and_with_an_etag(store: SingleTableStore) -> None:
    authored = queued_run(value={"text": "é", "none": None, "list": [1, 2.5, True, None, {}]})
    store.commit(CreateRun(authored))
    loaded = store.load("default", authored.id)
    assert without_etag(loaded) == authored
    assert len(loaded.etag) == 16


@pytest.mark.parametrize("run", [run_id(2), "", "x" * 1000, "a#b", "H"])
def test_a_run_that_is_not_there_is_not_found(store: SingleTableStore, run: str) -> None:
    created(store)
    with pytest.raises(NotFound):
        store.load("default", run)
    with pytest.raises(NotFound):
        store.load_contents("default", run, max_bytes=1000)


def test_a_second_create_is_refused_with_the_run_that_is_there(store: SingleTableStore) -> None:
    first = created(store)
    again = CreateRun(queued_run(value="other"))
    with pytest.raises(CommitRefused) as refused:
        store.commit(again)
    assert refused.value.refusals == (Refusal(again, first),)
    assert store.load("default", first.id) == first


def test_a_save_replaces_the_header_and_its_etag(store: SingleTableStore) -> None:
    before = created(store)
    store.commit(SaveRun(claimed(before)))
    after = store.load("default", before.id)
    assert without_etag(after) == without_etag(claimed(before))
    assert after.etag != before.etag


def test_a_stale_save_is_refused_with_the_run_as_it_is(store: SingleTableStore) -> None:
    stale = created(store)
    store.commit(SaveRun(claimed(stale)))
    current = store.load("default", stale.id)
    change = SaveRun(stale)
    with pytest.raises(CommitRefused) as refused:
        store.commit(change)
    assert refused.value.refusals == (Refusal(change, current),)
    assert store.load("default", stale.id) == current


def test_a_save_that_changes_nothing_still_outdates_what_was_loaded_before(store: SingleTableStore) -> None:
    stale = created(store)
    store.commit(SaveRun(stale))
    with pytest.raises(CommitRefused):
        store.commit(SaveRun(stale))


def test_a_run_that_was_never_created_cannot_be_saved(store: SingleTableStore) -> None:
    change = SaveRun(queued_run())
    with pytest.raises(CommitRefused) as refused:
        store.commit(change)
    assert refused.value.refusals == (Refusal(change, None),)
    with pytest.raises(NotFound):
        store.load("default", change.run.id)


def test_a_run_that_was_never_created_cannot_be_saved_with_a_slot_either(store: SingleTableStore) -> None:
    with pytest.raises(CommitRefused):
        store.commit(SaveRun(queued_run()), PutSlot("default", run_id(1), task_slot(0)))
    assert store.last_slot("default", run_id(1)) is None


def test_one_stale_change_undoes_the_whole_commit(store: SingleTableStore) -> None:
    stale, other = created(store, 1), created(store, 2)
    store.commit(SaveRun(stale))
    current = store.load("default", stale.id)
    save = SaveRun(stale)
    with pytest.raises(CommitRefused) as refused:
        store.commit(
            SaveRun(claimed(other)),
            PutSlot("default", other.id, task_slot(0)),
            PutMessage("default", other.id, event(1)),
            CreateRun(queued_run(3)),
            save,
        )
    assert refused.value.refusals == (Refusal(save, current),)
    assert store.load_contents("default", other.id, max_bytes=1000) == RunContents(other, (), (), is_complete=True)
    with pytest.raises(NotFound):
        store.load("default", run_id(3))


def test_every_refused_change_is_named_with_what_is_there(store: SingleTableStore) -> None:
    stale = created(store)
    store.commit(SaveRun(stale), PutSlot("default", stale.id, task_slot(0)), PutMessage("default", stale.id, event(1)))
    current = store.load("default", stale.id)
    slot, message = PutSlot("default", stale.id, task_slot(0, output=2)), PutMessage("default", stale.id, event(1, data=2))
    save, never = SaveRun(stale), SaveRun(queued_run(9))
    with pytest.raises(CommitRefused) as refused:
        store.commit(slot, message, PutSlot("default", stale.id, task_slot(1)), save, never)
    assert refused.value.refusals == (
        Refusal(slot, task_slot(0)),
        Refusal(message, event(1)),
        Refusal(save, current),
        Refusal(never, None),
    )
    assert refused.value.found_slot() == task_slot(0)


def test_a_commit_of_several_changes_is_seen_as_a_whole(store: SingleTableStore) -> None:
    run = claimed(created(store))
    store.commit(SaveRun(run), PutSlot("default", run.id, first_slot(run)), PutMessage("default", run.id, event(1)))
    contents = store.load_contents("default", run.id, max_bytes=100_000)
    assert without_etag(contents.run) == without_etag(run)
    assert (contents.slots, contents.messages, contents.is_complete) == ((first_slot(run),), (event(1),), True)


def test_a_commit_of_nothing_changes_nothing(store: SingleTableStore) -> None:
    before = created(store)
    store.commit()
    assert store.load("default", before.id) == before


def test_namespaces_do_not_see_each_other(store: SingleTableStore) -> None:
    ours, theirs = queued_run(), queued_run(namespace="other", value="theirs")
    store.commit(CreateRun(ours))
    with pytest.raises(NotFound):
        store.load("other", ours.id)
    store.commit(CreateRun(theirs), PutSlot("other", theirs.id, task_slot(0)), PutMessage("other", theirs.id, event(1)))
    assert without_etag(store.load("default", ours.id)) == ours
    assert without_etag(store.load("other", ours.id)) == theirs
    assert store.last_slot("default", ours.id) is None
    assert store.inbox("default", ours.id, after=0) == ()


def test_an_error_of_an_offer_is_cut_at_200_bytes_between_two_characters(store: SingleTableStore) -> None:
    run = created(store)
    store.commit(SaveRun(run.model_copy(update={"offer": Offer(attempts=1, last_error="x" + "é" * 200)})))
    assert store.load("default", run.id).offer == Offer(attempts=1, last_error="x" + "é" * 99)


def test_a_header_that_outgrows_an_item_is_refused_by_name_and_changes_nothing(store: SingleTableStore) -> None:
    before = created(store)
    incompressible = "".join(f"{number * 2654435761 % 2**32:08x}" for number in range(150_000))
    large = before.tail.model_copy(update={"records": queued_run(value=incompressible).tail.records})
    with pytest.raises(PayloadTooLarge, match=f"RUN#default#{before.id} H"):
        store.commit(SaveRun(before.model_copy(update={"tail": large})))
    assert store.load("default", before.id) == before


def test_a_slot_that_is_too_large_undoes_the_whole_commit(store: SingleTableStore) -> None:
    before = created(store)
    incompressible = "".join(f"{number * 2654435761 % 2**32:08x}" for number in range(150_000))
    slot: LogSlot = task_slot(0, output=incompressible)
    with pytest.raises(PayloadTooLarge, match="L#00000000"):
        store.commit(SaveRun(claimed(before)), PutSlot("default", before.id, slot))
    assert store.load("default", before.id) == before


def test_times_and_revisions_beyond_32_bits_come_back(store: SingleTableStore) -> None:
    authored = queued_run().model_copy(update={"revision": 2**40, "due_at": TimestampMs(10**14)})
    store.commit(CreateRun(authored))
    assert without_etag(store.load("default", authored.id)) == authored
