"""Log, inbox and the whole of a run."""

import pytest

from aiki_push.adapters.storage.formats import json_size
from aiki_push.adapters.storage.store import SingleTableStore
from aiki_push.adapters.storage.table import Key, Table
from aiki_push.domain.canonical_json import compact_json
from aiki_push.domain.changes import CreateRun, PutMessage, PutSlot
from aiki_push.domain.log_records import LogSlot
from aiki_push.domain.values import Json, RunId
from aiki_push.ports.store import CommitRefused, LogPage, Refusal
from aiki_push.testing import CountingTable
from tests.contracts.stored_examples import event, queued_run, run_id, task_slot

RUN = run_id(1)
ALL = 10**9


def noise(kilobytes: int, seed: int) -> str:
    """Text that zlib halves at best."""
    return "".join(f"{(seed * 40_503 + number) * 2654435761 % 2**32:08x}" for number in range(kilobytes * 128))


def append(store: SingleTableStore, *slots: LogSlot, run: RunId = RUN) -> None:
    for slot in slots:
        store.commit(PutSlot("default", run, slot))


def test_a_run_without_slots_has_no_log_beside_its_tail(store: SingleTableStore) -> None:
    store.commit(CreateRun(queued_run()))
    assert store.log("default", RUN, after=-1, max_bytes=ALL) == LogPage((), is_last=True)
    assert store.last_slot("default", RUN) is None
    assert store.inbox("default", RUN, after=0) == ()


def test_slots_come_back_in_order_whatever_their_order_of_writing(store: SingleTableStore) -> None:
    slots = [task_slot(position, output=position) for position in (0, 1, 2, 9, 10, 11, 100)]
    append(store, *reversed(slots))
    assert store.log("default", RUN, after=-1, max_bytes=ALL) == LogPage(tuple(slots), is_last=True)
    assert store.log("default", RUN, after=9, max_bytes=ALL) == LogPage(tuple(slots[4:]), is_last=True)
    assert store.log("default", RUN, after=100, max_bytes=ALL) == LogPage((), is_last=True)
    assert store.last_slot("default", RUN) == slots[-1]


@pytest.mark.parametrize("after", [1, 99_999_998, 99_999_999, 10**11])
def test_nothing_follows_the_last_slot_and_the_last_message(store: SingleTableStore, after: int) -> None:
    append(store, task_slot(0), task_slot(1))
    store.commit(PutMessage("default", RUN, event(1)))
    assert store.log("default", RUN, after=after, max_bytes=ALL) == LogPage((), is_last=True)
    assert store.inbox("default", RUN, after=after) == ()


def test_a_taken_position_is_refused_with_the_slot_that_has_it(store: SingleTableStore) -> None:
    append(store, task_slot(3, output="first"))
    second = PutSlot("default", RUN, task_slot(3, output="second"))
    with pytest.raises(CommitRefused) as refused:
        store.commit(second)
    assert refused.value.refusals == (Refusal(second, task_slot(3, output="first")),)
    assert refused.value.found_slot() == task_slot(3, output="first")
    assert store.last_slot("default", RUN) == task_slot(3, output="first")


def test_a_repeated_append_is_refused_too_since_only_the_caller_knows_whether_it_still_counts(store: SingleTableStore) -> None:
    append(store, task_slot(3))
    with pytest.raises(CommitRefused) as refused:
        append(store, task_slot(3))
    assert refused.value.found_slot() == task_slot(3)


def test_logs_of_two_runs_do_not_mix(store: SingleTableStore) -> None:
    append(store, task_slot(0), run=run_id(1))
    append(store, task_slot(0, output=2), task_slot(1), run=run_id(2))
    assert store.log("default", run_id(1), after=-1, max_bytes=ALL) == LogPage((task_slot(0),), is_last=True)
    assert store.last_slot("default", run_id(2)) == task_slot(1)


@pytest.mark.parametrize("output", [1, "compresses well " * 200], ids=["as text", "compressed"])
def test_a_page_ends_before_the_slot_whose_json_would_exceed_its_bytes(
    store: SingleTableStore, table: Table, output: Json
) -> None:
    append(store, *(task_slot(position, output=output) for position in range(5)))
    slot_bytes = json_size(table.get(Key(f"RUN#default#{RUN}", "L#00000000")) or {})
    assert slot_bytes >= len(compact_json(output))
    page = store.log("default", RUN, after=-1, max_bytes=3 * slot_bytes)
    assert ([slot.position for slot in page.slots], page.is_last) == ([0, 1, 2], False)
    assert len(store.log("default", RUN, after=-1, max_bytes=3 * slot_bytes - 1).slots) == 2
    rest = store.log("default", RUN, after=2, max_bytes=2 * slot_bytes)
    assert ([slot.position for slot in rest.slots], rest.is_last) == ([3, 4], True)


def test_a_page_has_at_least_one_slot(store: SingleTableStore) -> None:
    append(store, task_slot(0), task_slot(1))
    page = store.log("default", RUN, after=-1, max_bytes=1)
    assert (page.slots, page.is_last) == ((task_slot(0),), False)
    store.commit(CreateRun(queued_run()))
    contents = store.load_contents("default", RUN, max_bytes=1)
    assert (contents.slots, contents.is_complete) == ((task_slot(0),), False)


def test_a_log_of_more_than_a_megabyte_is_read_to_its_end(counted_store: SingleTableStore) -> None:
    slots = tuple(task_slot(position, output=noise(250, position)) for position in range(12))
    counted_store.commit(CreateRun(queued_run()))
    append(counted_store, *slots)
    assert counted_store.log("default", RUN, after=-1, max_bytes=ALL) == LogPage(slots, is_last=True)
    contents = counted_store.load_contents("default", RUN, max_bytes=ALL)
    assert (contents.slots, contents.is_complete) == (slots, True)


def test_contents_are_header_inbox_and_log_by_one_query(counted_store: SingleTableStore, counting: CountingTable) -> None:
    counted_store.commit(CreateRun(queued_run()))
    append(counted_store, task_slot(0), task_slot(1))
    for seq in (1, 2, 10):
        counted_store.commit(PutMessage("default", RUN, event(seq, data=seq)))
    counting.reset()
    contents = counted_store.load_contents("default", RUN, max_bytes=ALL)
    assert (counting.counts.queries, counting.counts.gets) == (1, 0)
    assert contents.run == counted_store.load("default", RUN)
    assert contents.messages == (event(1, data=1), event(2, data=2), event(10, data=10))
    assert contents.slots == (task_slot(0), task_slot(1))
    assert contents.is_complete


def test_the_inbox_is_read_in_order_of_arrival(store: SingleTableStore) -> None:
    for seq in (2, 10, 1, 9):
        store.commit(PutMessage("default", RUN, event(seq, data=seq)))
    assert [message.seq for message in store.inbox("default", RUN, after=0)] == [1, 2, 9, 10]
    assert store.inbox("default", RUN, after=9) == (event(10, data=10),)


def test_a_taken_number_is_refused_with_the_message_that_has_it(store: SingleTableStore) -> None:
    store.commit(PutMessage("default", RUN, event(1, data="first")))
    second = PutMessage("default", RUN, event(1, data="second"))
    with pytest.raises(CommitRefused) as refused:
        store.commit(second)
    assert refused.value.refusals == (Refusal(second, event(1, data="first")),)
    assert refused.value.found_slot() is None
