"""References: which run one names, and who gets it."""

import pytest

from aiki_push.adapters.storage.store import SingleTableStore
from aiki_push.domain.changes import CreateRun, PutReference, PutSlot
from aiki_push.domain.errors import NotFound
from aiki_push.domain.run import Run, RunReference
from aiki_push.ports.store import CommitRefused, Refusal
from aiki_push.testing import CountingTable, Counts
from tests.contracts.stored_examples import queued_run, run_id, task_slot


def naming(run: Run, *, etag: str = "") -> RunReference:
    assert run.reference is not None
    return RunReference(
        etag=etag,
        namespace=run.namespace,
        workflow=run.workflow,
        version=run.version,
        reference=run.reference,
        run_id=run.id,
    )


def referred(number: int = 1, *, reference: str = "order 7", **fields: object) -> Run:
    return queued_run(number).model_copy(update={"reference": reference, **fields})


def start(store: SingleTableStore, run: Run) -> None:
    store.commit(CreateRun(run), PutReference(naming(run)))


def named(store: SingleTableStore, run: Run) -> RunReference | None:
    """What the reference of `run` names, without its etag."""
    assert run.reference is not None
    found = store.reference(run.namespace, run.workflow, run.version, run.reference)
    return None if found is None else found.model_copy(update={"etag": ""})


def test_a_reference_names_the_run_that_it_was_written_with(store: SingleTableStore) -> None:
    run = referred()
    assert named(store, run) is None
    start(store, run)
    assert named(store, run) == naming(run)
    assert store.load("default", run.id).reference == "order 7"


def test_a_second_run_with_the_same_reference_is_refused_with_what_it_names_and_leaves_nothing(store: SingleTableStore) -> None:
    first, second = referred(1), referred(2)
    start(store, first)
    with pytest.raises(CommitRefused) as refused:
        start(store, second)
    change = PutReference(naming(second))
    found = store.reference("default", "orders", "1.0.0", "order 7")
    assert refused.value.refusals == (Refusal(change, found),)
    assert refused.value.found_run() is None
    with pytest.raises(NotFound):
        store.load("default", second.id)
    assert named(store, first) == naming(first)


def test_the_same_start_again_is_refused_with_the_run_and_the_reference(store: SingleTableStore) -> None:
    run = referred()
    start(store, run)
    with pytest.raises(CommitRefused) as refused:
        start(store, run)
    assert refused.value.found_run() == store.load("default", run.id)
    assert [type(refusal.found) for refusal in refused.value.refusals] == [Run, RunReference]


def test_a_reference_is_taken_over_only_as_it_was_read(store: SingleTableStore) -> None:
    start(store, referred(1))
    read = store.reference("default", "orders", "1.0.0", "order 7")
    assert read is not None
    second, third = referred(2), referred(3)
    store.commit(CreateRun(second), PutReference(naming(second, etag=read.etag)))
    assert named(store, second) == naming(second)
    with pytest.raises(CommitRefused):
        store.commit(CreateRun(third), PutReference(naming(third, etag=read.etag)))
    with pytest.raises(CommitRefused):
        store.commit(PutReference(naming(referred(4, reference="never used"), etag=read.etag)))
    assert named(store, second) == naming(second)


@pytest.mark.parametrize(
    "other",
    [
        {"namespace": "other"},
        {"workflow": "refunds"},
        {"version": "2"},
        {"reference": "order 8"},
        {"reference": "Order 7"},
        {"reference": "order 7 "},
    ],
    ids=str,
)
def test_a_reference_of_something_else_is_another_one(store: SingleTableStore, other: dict[str, object]) -> None:
    first, second = referred(1), referred(2).model_copy(update=other)
    start(store, first)
    start(store, second)
    assert (named(store, first), named(store, second)) == (naming(first), naming(second))


@pytest.mark.parametrize(
    "text",
    ["#", "a#b", "%23", "é", "e\u0301", "注文 42", "🧾" * 256, "x" * 256, "a/b?c=d&e", "-", "'\"\\{}", "\u202e", " "],
    ids=ascii,
)
def test_any_text_is_a_reference_and_comes_back_as_it_was(store: SingleTableStore, text: str) -> None:
    run = referred(reference=text)
    start(store, run)
    assert named(store, run) == naming(run)
    assert named(store, referred(reference=text + "x")) is None


@pytest.mark.parametrize("reference", ["7", "🧾" * 256], ids=["short", "long"])
def test_a_start_with_a_reference_is_one_transaction(
    counted_store: SingleTableStore, counting: CountingTable, reference: str
) -> None:
    start(counted_store, referred(reference=reference))
    assert counting.reset() == Counts(transactions=1, items_written=2, write_units=4)


def test_a_start_with_a_reference_and_a_large_input_is_one_transaction(
    counted_store: SingleTableStore, counting: CountingTable
) -> None:
    run = referred()
    counted_store.commit(CreateRun(run), PutSlot("default", run.id, task_slot(0)), PutReference(naming(run)))
    assert counting.reset() == Counts(transactions=1, items_written=3, write_units=6)


def test_a_reference_is_read_by_one_get(counted_store: SingleTableStore, counting: CountingTable) -> None:
    start(counted_store, referred())
    counting.reset()
    assert counted_store.reference("default", "orders", "1.0.0", "order 7")
    assert counting.reset() == Counts(gets=1)


def test_headers_read_together_come_in_the_order_asked_for_without_those_that_are_not_there(store: SingleTableStore) -> None:
    for number in (1, 2, 3):
        store.commit(CreateRun(queued_run(number)))
    store.commit(CreateRun(queued_run(4, namespace="other")))
    wanted = [run_id(number) for number in (3, 9, 1, 4, 2)]
    expected = tuple(store.load("default", run_id(number)) for number in (3, 1, 2))
    assert store.load_many("default", wanted) == expected
    assert store.load_many("default", []) == ()


def test_more_headers_than_a_batch_holds_are_read_in_several(counted_store: SingleTableStore, counting: CountingTable) -> None:
    numbers = range(201)
    for number in numbers:
        counted_store.commit(CreateRun(queued_run(number)))
    counting.reset()
    assert [run.id for run in counted_store.load_many("default", [*map(run_id, numbers)])] == [*map(run_id, numbers)]
    assert counting.reset() == Counts(batch_gets=3)
