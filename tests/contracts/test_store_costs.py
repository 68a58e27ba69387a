"""What each write costs in DynamoDB's write units, counted exactly, indexes apart."""

from collections.abc import Sequence

import pytest

from aiki_push.adapters.storage.formats import Shards, header_item, slot_item
from aiki_push.adapters.storage.sizes import item_size
from aiki_push.adapters.storage.store import SingleTableStore
from aiki_push.adapters.storage.table import Always, Delete, EtagIs, Item, Key, Put
from aiki_push.domain.changes import (
    Change,
    CreateRun,
    DeleteWatcher,
    PutEventReference,
    PutMessage,
    PutSlot,
    PutWatcher,
    SaveRun,
)
from aiki_push.domain.log_records import Tail, Transition
from aiki_push.domain.run import Directive, LastWrite, Offer, Run
from aiki_push.domain.run_states import AwaitingEvent, Completed
from aiki_push.domain.values import Inline, Json
from aiki_push.domain.waits import Wait
from aiki_push.ports.store import CommitRefused
from aiki_push.testing import FAKE_NOW, CountingTable, Counts
from tests.contracts.stored_examples import child_ended, claimed, event, first_slot, queued_run, run_id, task_slot, watcher

RUN = run_id(1)
INPUT: Json = {"order": 17, "customer": "c-123456", "lines": [{"sku": "A-1", "count": 2}, {"sku": "B-7", "count": 1}]}


@pytest.fixture
def run(counted_store: SingleTableStore, counting: CountingTable) -> Run:
    counted_store.commit(CreateRun(queued_run(value=INPUT)))
    counting.reset()
    return counted_store.load("default", RUN)


def cost(store: SingleTableStore, counting: CountingTable, *changes: Change) -> Counts:
    counting.reset()
    store.commit(*changes)
    return counting.reset()


def single(units: int) -> Counts:
    return Counts(single_writes=1, items_written=1, write_units=units)


def test_a_start_is_one_write_of_one_unit(counted_store: SingleTableStore, counting: CountingTable) -> None:
    assert cost(counted_store, counting, CreateRun(queued_run(value=INPUT))) == single(1)


def test_a_claim_is_one_write_of_one_unit(counted_store: SingleTableStore, counting: CountingTable, run: Run) -> None:
    assert cost(counted_store, counting, SaveRun(claimed(run))) == single(1)


def test_each_of_a_hundred_small_tasks_is_one_write_of_one_unit_the_first_one_included(
    counted_store: SingleTableStore, counting: CountingTable, run: Run
) -> None:
    slots: Sequence[Change] = [
        PutSlot("default", RUN, first_slot(claimed(run))),
        *(PutSlot("default", RUN, task_slot(number, output={"charged": True, "cents": 129_900})) for number in range(1, 100)),
    ]
    assert [cost(counted_store, counting, slot) for slot in slots] == [single(1)] * 100


def test_a_park_is_one_write_of_one_unit(counted_store: SingleTableStore, counting: CountingTable, run: Run) -> None:
    counted_store.commit(SaveRun(claimed(run)))
    state = AwaitingEvent(timeout_at=FAKE_NOW)
    transition = Transition(at=FAKE_NOW, origin="running", state=state, revision=2, attempts=1)
    parked = counted_store.load("default", RUN).model_copy(
        update={
            "state": state,
            "revision": 2,
            "tail": Tail(position=1, records=(*task_slot(1).records[:1], transition)),
            "waits": (Wait(kind="event", key="paid", ordinal=0, deadline_at=FAKE_NOW),),
            "last_write": LastWrite(checkpoint_id=run_id(7), claim_id=run_id(8)),
        }
    )
    assert cost(counted_store, counting, SaveRun(parked)) == single(1)


def test_a_finish_is_one_write_of_one_unit(counted_store: SingleTableStore, counting: CountingTable, run: Run) -> None:
    transition = Transition(
        at=FAKE_NOW, origin="running", state=Completed(), revision=2, attempts=1, executor="worker-1", output=Inline(value=INPUT)
    )
    finished = claimed(run).model_copy(
        update={"state": Completed(), "tail": Tail(position=100, records=(*task_slot(99).records[:1], transition))}
    )
    assert cost(counted_store, counting, SaveRun(finished)) == single(1)


def test_a_transition_with_a_sealed_slot_is_a_transaction_of_four_units(
    counted_store: SingleTableStore, counting: CountingTable, run: Run
) -> None:
    counts = cost(counted_store, counting, SaveRun(claimed(run)), PutSlot("default", RUN, task_slot(0)))
    assert counts == Counts(transactions=1, items_written=2, write_units=4)


def test_an_event_is_a_transaction_of_four_units(counted_store: SingleTableStore, counting: CountingTable, run: Run) -> None:
    counts = cost(counted_store, counting, SaveRun(claimed(run)), PutMessage("default", RUN, event(1, data=INPUT)))
    assert counts == Counts(transactions=1, items_written=2, write_units=4)


@pytest.mark.parametrize("reference", ["7", "🧾" * 200], ids=["short", "long"])
def test_an_event_with_a_reference_is_a_transaction_of_six_units(
    counted_store: SingleTableStore, counting: CountingTable, run: Run, reference: str
) -> None:
    counts = cost(
        counted_store,
        counting,
        SaveRun(claimed(run)),
        PutMessage("default", RUN, event(1, data=INPUT)),
        PutEventReference("default", RUN, "paid", reference),
    )
    assert counts == Counts(transactions=1, items_written=3, write_units=6)


def test_an_event_that_was_sent_before_costs_what_it_would_and_writes_nothing(
    counted_store: SingleTableStore, counting: CountingTable, run: Run
) -> None:
    reference = PutEventReference("default", RUN, "paid", "7")
    counted_store.commit(reference)
    counting.reset()
    with pytest.raises(CommitRefused):
        counted_store.commit(SaveRun(claimed(run)), PutMessage("default", RUN, event(1, data=INPUT)), reference)
    assert counting.reset() == Counts(transactions=1, write_units=6)


def test_the_end_of_a_child_is_told_in_a_transaction_of_six_units(
    counted_store: SingleTableStore, counting: CountingTable, run: Run
) -> None:
    child = run_id(2)
    counted_store.commit(PutWatcher("default", child, watcher(1)))
    (read,) = counted_store.watchers("default", child, limit=1)
    counts = cost(
        counted_store,
        counting,
        SaveRun(claimed(run)),
        PutMessage("default", RUN, child_ended(1, child)),
        DeleteWatcher("default", child, read),
    )
    assert counts == Counts(transactions=1, items_written=3, write_units=6)


def test_a_watcher_costs_a_unit_to_put_to_put_again_and_to_delete(
    counted_store: SingleTableStore, counting: CountingTable
) -> None:
    put = PutWatcher("default", RUN, watcher(2))
    assert [cost(counted_store, counting, put) for _ in range(2)] == [single(1)] * 2
    (read,) = counted_store.watchers("default", RUN, limit=1)
    assert cost(counted_store, counting, DeleteWatcher("default", RUN, read)) == single(1)


@pytest.mark.parametrize("condition", [Always(), EtagIs("a")], ids=str)
def test_a_delete_is_billed_by_the_item_that_goes_and_twice_in_a_transaction(
    counting: CountingTable, condition: Always | EtagIs
) -> None:
    large: Item = {"PK": "A", "SK": "1", "etag": "a", "d": b"x" * 2048}
    delete = Delete(Key("A", "1"), condition)
    counting.write([Put(large, Always())], token="t")
    counting.reset()
    counting.write([delete], token="t")
    assert counting.reset() == single(3)
    counting.write([Put(large, Always())], token="t")
    counting.reset()
    counting.write([delete, Put({"PK": "A", "SK": "2"}, Always())], token="t")
    assert counting.reset() == Counts(transactions=1, items_written=2, write_units=2 * (3 + 1))


def test_an_incompressible_slot_costs_a_unit_for_each_kilobyte(
    counted_store: SingleTableStore, counting: CountingTable, run: Run
) -> None:
    noise = "".join(f"{number * 2654435761 % 2**32:08x}" for number in range(30 * 128))
    slot = task_slot(0, output=noise)
    units = -(-item_size(slot_item("default", run.id, slot, "e" * 16)) // 1024)
    assert 15 < units < 32
    assert cost(counted_store, counting, PutSlot("default", RUN, slot)) == single(units)


def test_a_compressible_slot_costs_less_than_its_size(counted_store: SingleTableStore, counting: CountingTable, run: Run) -> None:
    lines: list[Json] = [{"sku": f"A-{number}", "count": number % 3, "price": 100 * number} for number in range(600)]
    slot = task_slot(0, output={"lines": lines})
    size = len(slot.model_dump_json())
    assert size > 20 * 1024
    assert cost(counted_store, counting, PutSlot("default", run.id, slot)).write_units <= 6


def test_a_refused_append_still_costs_a_unit(counted_store: SingleTableStore, counting: CountingTable, run: Run) -> None:
    counted_store.commit(PutSlot("default", run.id, task_slot(0)))
    counting.reset()
    with pytest.raises(CommitRefused):
        counted_store.commit(PutSlot("default", run.id, task_slot(0)))
    assert counting.reset() == Counts(single_writes=1, write_units=1)


def test_a_replaced_header_is_billed_by_its_larger_version(
    counted_store: SingleTableStore, counting: CountingTable, run: Run
) -> None:
    noise = "".join(f"{number * 2654435761 % 2**32:08x}" for number in range(3 * 128))
    large = queued_run(value=noise).tail
    grown = cost(counted_store, counting, SaveRun(run.model_copy(update={"tail": large})))
    assert grown.write_units > 1
    shrunk = counted_store.load("default", RUN).model_copy(update={"tail": run.tail})
    assert cost(counted_store, counting, SaveRun(shrunk)) == grown
    assert cost(counted_store, counting, SaveRun(counted_store.load("default", RUN))) == single(1)


def test_a_header_with_everything_a_run_can_have_stays_under_2_kb_beside_its_tail() -> None:
    run = claimed(queued_run(namespace="n" * 64))
    full = run.model_copy(
        update={
            "workflow": "w" * 128,
            "version": "v" * 128,
            "operations": tuple(f"{number * 2654435761**8 % 16**64:064x}" for number in range(1, 9)),
            "offer": Offer(attempts=12, last_error="connection refused by the endpoint " * 20),
            "waits": tuple(Wait(kind="event", key=f"approved-{number}", ordinal=number) for number in range(8)),
            "parent": run_id(2),
            "inbox_seq": 12_345,
            "seen_seq": 12_344,
            "open_child_waits": 8,
            "watched": True,
            "paused_from": AwaitingEvent(timeout_at=FAKE_NOW),
            "directive": Directive(action="cancel", operation_id="o" * 64, explanation="no longer wanted by the customer"),
            "duties": ("tell_watchers", "cancel_children"),
            "last_write": LastWrite(checkpoint_id="c" * 64, claim_id="d" * 64),
            "tail": Tail(position=12_345, records=()),
        }
    )
    assert item_size(header_item(full, "e" * 16, Shards(8, 8))) < 2048
