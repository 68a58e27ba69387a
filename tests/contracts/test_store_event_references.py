"""Events that were sent with a reference: each is sent once."""

from collections.abc import Sequence
from itertools import product

import pytest

from aiki_push.adapters.storage.store import SingleTableStore
from aiki_push.domain.changes import Change, CreateRun, PutEventReference, PutMessage, SaveRun
from aiki_push.domain.values import RunId
from aiki_push.ports.store import CommitRefused, Refusal, SentEvent
from tests.contracts.stored_examples import event, queued_run, run_id

RUN = run_id(1)


def sent(name: str = "paid", reference: str = "webhook 7", *, run: RunId = RUN, namespace: str = "default") -> PutEventReference:
    return PutEventReference(namespace, run, name, reference)


def sending(store: SingleTableStore, seq: int, reference: PutEventReference) -> Sequence[Change]:
    """All that an event to the run is."""
    run = store.load("default", RUN).model_copy(update={"inbox_seq": seq})
    return [SaveRun(run), PutMessage("default", RUN, event(seq)), reference]


def send(store: SingleTableStore, reference: PutEventReference) -> SentEvent | None:
    """None where nothing was sent with it before, and else what was."""
    try:
        store.commit(reference)
    except CommitRefused as refused:
        return refused.found_event()
    return None


def in_the_way(reference: PutEventReference) -> SentEvent:
    return SentEvent(reference.event, reference.reference)


def test_an_event_with_a_reference_is_in_the_inbox_and_its_reference_is_taken(store: SingleTableStore) -> None:
    store.commit(CreateRun(queued_run()))
    store.commit(*sending(store, 1, sent()))
    assert store.load("default", RUN).inbox_seq == 1
    assert store.inbox("default", RUN, after=0) == (event(1),)
    assert send(store, sent()) == in_the_way(sent())


def test_the_same_event_again_is_refused_with_what_was_sent_and_writes_nothing(store: SingleTableStore) -> None:
    store.commit(CreateRun(queued_run()))
    store.commit(*sending(store, 1, sent()))
    before = store.load("default", RUN)
    with pytest.raises(CommitRefused) as refused:
        store.commit(*sending(store, 2, sent()))
    assert refused.value.refusals == (Refusal(sent(), SentEvent("paid", "webhook 7")),)
    assert refused.value.found_event() == SentEvent("paid", "webhook 7")
    assert (refused.value.found_run(), refused.value.found_slot()) == (None, None)
    assert store.load("default", RUN) == before
    assert store.inbox("default", RUN, after=0) == (event(1),)


def test_an_event_that_meets_a_changed_header_leaves_its_reference_free(store: SingleTableStore) -> None:
    store.commit(CreateRun(queued_run()))
    stale = sending(store, 1, sent())
    store.commit(SaveRun(store.load("default", RUN)))
    with pytest.raises(CommitRefused) as refused:
        store.commit(*stale)
    assert refused.value.found_event() is None
    assert send(store, sent()) is None


@pytest.mark.parametrize(
    "other",
    [
        sent("refunded"),
        sent("Paid"),
        sent(reference="webhook 8"),
        sent(reference="Webhook 7"),
        sent(reference="webhook 7 "),
        sent(run=run_id(2)),
        sent(namespace="other"),
    ],
    ids=str,
)
def test_a_reference_of_another_event_run_or_namespace_is_another_one(store: SingleTableStore, other: PutEventReference) -> None:
    assert send(store, sent()) is None
    assert send(store, other) is None
    assert send(store, sent()) == in_the_way(sent())
    assert send(store, other) == in_the_way(other)


@pytest.mark.parametrize(
    "text",
    ["#", "a#b", "%23", "é", "e\u0301", "注文 42", "🧾" * 256, "x" * 256, "a/b?c=d&e", "-", "'\"\\{}", "\u202e", " "],
    ids=ascii,
)
def test_any_text_is_a_reference_of_an_event_and_comes_back_as_it_was(store: SingleTableStore, text: str) -> None:
    assert send(store, sent(reference=text)) is None
    assert send(store, sent(reference=text)) == in_the_way(sent(reference=text))
    assert send(store, sent(reference=text + "x")) is None


def test_neither_a_name_nor_a_reference_can_forge_a_separator(store: SingleTableStore) -> None:
    parts = ("a", "a#b", "b", "#", "%23", "a%23b", "")
    references = [sent(*pair) for pair in product(parts, repeat=2)]
    places = [sent(run=RunId(run), namespace=namespace) for namespace, run in product(parts, repeat=2)]
    assert {send(store, one) for one in (*references, *places)} == {None}
    assert all(send(store, one) == in_the_way(one) for one in (*references, *places))


def test_references_of_events_are_no_part_of_a_runs_contents(store: SingleTableStore) -> None:
    store.commit(CreateRun(queued_run()))
    before = store.load_contents("default", RUN, max_bytes=1_000)
    assert send(store, sent()) is None
    assert store.load_contents("default", RUN, max_bytes=1_000) == before
    assert store.reference("default", "paid", "webhook 7", "webhook 7") is None
