"""What every engine's table has to do, as raw items."""

from collections.abc import Sequence

import pytest

from aiki_push.adapters.storage.table import (
    Absent,
    Always,
    Condition,
    Delete,
    EtagIs,
    IndexName,
    Item,
    Key,
    Page,
    Put,
    Query,
    Table,
    WriteRefused,
    rows,
)
from aiki_push.domain.errors import InternalError, PayloadTooLarge


def item(sk: str, *, pk: str = "A", **attributes: str | int | bytes) -> Item:
    return {"PK": pk, "SK": sk, **attributes}


def put(table: Table, *items: Item, condition: Condition | None = None) -> None:
    for one in items:
        table.write([Put(one, condition or Always())], token="t")


def keys_of(items: Page | list[Item]) -> list[str]:
    return [str(one["SK"]) for one in (items.items if isinstance(items, Page) else items)]


def test_an_item_comes_back_with_the_type_of_every_attribute(table: Table) -> None:
    written = item("1", text="é\u0000", number=-17, zero=0, content=b"\x00\xff")
    put(table, written)
    assert table.get(Key("A", "1")) == written


def test_an_empty_text_and_an_empty_content_are_kept(table: Table) -> None:
    written = item("1", text="", content=b"")
    put(table, written)
    assert table.get(Key("A", "1")) == written


def test_where_nothing_is_nothing_is_found(table: Table) -> None:
    put(table, item("1"))
    assert table.get(Key("A", "2")) is None
    assert table.get(Key("B", "1")) is None


def test_a_put_replaces_the_item_as_a_whole(table: Table) -> None:
    put(table, item("1", old=1), item("1", new=2))
    assert table.get(Key("A", "1")) == item("1", new=2)


def test_changing_the_mapping_that_was_written_does_not_change_the_item(table: Table) -> None:
    written: dict[str, str | int | bytes] = {"PK": "A", "SK": "1", "value": 1}
    put(table, written)
    written["value"] = 2
    assert table.get(Key("A", "1")) == item("1", value=1)


def test_absent_refuses_where_an_item_is_and_tells_which(table: Table) -> None:
    put(table, item("1", value="first"), condition=Absent())
    with pytest.raises(WriteRefused) as refused:
        put(table, item("1", value="second"), condition=Absent())
    assert refused.value.found == {0: item("1", value="first")}
    assert table.get(Key("A", "1")) == item("1", value="first")


def test_etag_is_writes_over_that_etag_only(table: Table) -> None:
    put(table, item("1", etag="a"))
    put(table, item("1", etag="b"), condition=EtagIs("a"))
    with pytest.raises(WriteRefused) as refused:
        put(table, item("1", etag="c"), condition=EtagIs("a"))
    assert refused.value.found == {0: item("1", etag="b")}


@pytest.mark.parametrize("there", [(), (item("1"),)], ids=["nothing", "an item without etag"])
def test_etag_is_refuses_where_no_etag_is(table: Table, there: tuple[Item, ...]) -> None:
    put(table, *there)
    with pytest.raises(WriteRefused) as refused:
        put(table, item("1", etag="b"), condition=EtagIs(""))
    assert refused.value.found == {0: there[0] if there else None}


def test_a_delete_removes_the_item_and_does_nothing_where_none_is(table: Table) -> None:
    put(table, item("1"))
    for _ in range(2):
        table.write([Delete(Key("A", "1"))], token="t")
    assert table.get(Key("A", "1")) is None


def test_a_transaction_writes_everything(table: Table) -> None:
    put(table, item("1"), item("2", etag="a"))
    table.write(
        [Delete(Key("A", "1")), Put(item("2", etag="b"), EtagIs("a")), Put(item("3"), Absent()), Put(item("4"), Always())],
        token="t",
    )
    assert keys_of(list(rows(table, Query("A", "0", "9")))) == ["2", "3", "4"]
    assert table.get(Key("A", "2")) == item("2", etag="b")


def test_a_refused_transaction_writes_nothing_and_tells_each_refusal_by_its_place(table: Table) -> None:
    put(table, item("1", value=1), item("2", etag="a"))
    with pytest.raises(WriteRefused) as refused:
        table.write(
            [
                Put(item("0"), Absent()),
                Put(item("1", value=2), Absent()),
                Put(item("2", etag="c"), EtagIs("b")),
                Put(item("3", etag="c"), EtagIs("b")),
            ],
            token="t",
        )
    assert refused.value.found == {1: item("1", value=1), 2: item("2", etag="a"), 3: None}
    assert list(rows(table, Query("A", "0", "9"))) == [item("1", value=1), item("2", etag="a")]


def test_a_refused_transaction_deletes_nothing(table: Table) -> None:
    put(table, item("1"), item("2"))
    with pytest.raises(WriteRefused):
        table.write([Delete(Key("A", "1")), Put(item("2"), Absent())], token="t")
    assert table.get(Key("A", "1")) == item("1")


def test_a_conditional_delete_removes_the_item_with_that_etag_only(table: Table) -> None:
    put(table, item("1", etag="a"))
    with pytest.raises(WriteRefused) as refused:
        table.write([Delete(Key("A", "1"), EtagIs("b"))], token="t")
    assert refused.value.found == {0: item("1", etag="a")}
    assert table.get(Key("A", "1")) == item("1", etag="a")
    table.write([Delete(Key("A", "1"), EtagIs("a"))], token="t")
    assert table.get(Key("A", "1")) is None


@pytest.mark.parametrize("there", [(), (item("1"),)], ids=["nothing", "an item without etag"])
@pytest.mark.parametrize("with_others", [False, True], ids=["alone", "with others"])
def test_a_conditional_delete_is_refused_where_no_etag_is(table: Table, there: tuple[Item, ...], with_others: bool) -> None:
    put(table, *there)
    others = [Put(item("2"), Absent())] if with_others else []
    with pytest.raises(WriteRefused) as refused:
        table.write([*others, Delete(Key("A", "1"), EtagIs(""))], token="t")
    assert refused.value.found == {len(others): there[0] if there else None}
    assert list(rows(table, Query("A", "0", "9"))) == list(there)


def test_a_transaction_deletes_by_the_etag_of_each_item(table: Table) -> None:
    put(table, item("1", etag="a"), item("2", etag="b"), item("3", etag="c"))
    table.write([Delete(Key("A", "1"), EtagIs("a")), Put(item("4"), Absent()), Delete(Key("A", "3"), EtagIs("c"))], token="t")
    assert keys_of(list(rows(table, Query("A", "0", "9")))) == ["2", "4"]


def test_a_refused_delete_undoes_its_transaction_and_tells_each_refusal_by_its_place(table: Table) -> None:
    before = [item("1", etag="a"), item("2", etag="b"), item("3", etag="c"), item("4", etag="d")]
    put(table, *before)
    with pytest.raises(WriteRefused) as refused:
        table.write(
            [
                Delete(Key("A", "1"), EtagIs("a")),
                Delete(Key("A", "2"), EtagIs("a")),
                Put(item("3", etag="e"), EtagIs("a")),
                Delete(Key("A", "4")),
                Delete(Key("A", "5"), EtagIs("a")),
                Put(item("6"), Absent()),
            ],
            token="t",
        )
    assert refused.value.found == {1: before[1], 2: before[2], 4: None}
    assert list(rows(table, Query("A", "0", "9"))) == before


def test_a_query_gives_one_partition_in_bytewise_order_with_both_bounds_included(table: Table) -> None:
    put(table, *(item(sk) for sk in ("b", "a", "B", "é", "c", "ba")), item("b", pk="B"))
    assert keys_of(table.query(Query("A", "B", "b"))) == ["B", "a", "b"]
    assert keys_of(table.query(Query("A", "b", "é", ascending=False))) == ["é", "c", "ba", "b"]
    assert table.query(Query("C", "0", "z")) == Page((), is_last=True)


@pytest.mark.parametrize("ascending", [True, False])
def test_pages_follow_each_other_without_gap_or_repetition(table: Table, ascending: bool) -> None:
    put(table, *(item(f"{number:02d}") for number in range(10)))
    query = Query("A", "02", "08", ascending=ascending, page_size=3)
    first = table.query(query)
    assert (len(first.items), first.is_last) == (3, False)
    expected = [f"{number:02d}" for number in range(2, 9)]
    assert keys_of(list(rows(table, query))) == (expected if ascending else expected[::-1])


def test_an_item_is_in_an_index_while_it_has_both_attributes(table: Table) -> None:
    def entries(index: IndexName) -> list[Item]:
        return list(rows(table, Query("P", "0", "9", index=index)))

    put(table, item("1", due="P", due_at="5", ready="P", ready_at="6", etag="e"), item("2", due="P", ready_at="5"))
    assert entries("due") == [item("1", due="P", due_at="5")]
    assert entries("ready") == [item("1", ready="P", ready_at="6", due_at="5")]
    put(table, item("1", due="P", due_at="7", by_workflow="P", by_state="P", created="8"))
    assert entries("due") == [item("1", due="P", due_at="7")]
    assert entries("ready") == []
    assert entries("by_workflow") == [item("1", by_workflow="P", created="8")]
    assert entries("by_state") == [item("1", by_state="P", created="8")]
    table.write([Delete(Key("A", "1"))], token="t")
    assert entries("due") == entries("by_workflow") == entries("by_state") == []


def test_an_index_entry_has_what_its_reader_needs_beside_its_key_only_where_the_item_has_it(table: Table) -> None:
    put(table, item("1", ready="P", ready_at="6", etag="e"))
    assert list(rows(table, Query("P", "0", "9", index="ready"))) == [item("1", ready="P", ready_at="6")]


def test_items_read_together_are_those_that_are_there(table: Table) -> None:
    put(table, *(item(f"{number:03d}", number=number) for number in range(99)))
    keys = [Key("A", f"{number:03d}") for number in range(99)]
    found = table.get_many([*keys, Key("A", "none")])
    assert sorted(found, key=lambda one: str(one["SK"])) == [item(f"{number:03d}", number=number) for number in range(99)]
    assert list(table.get_many([Key("A", "none")])) == list(table.get_many([])) == []


def test_items_read_together_are_all_found_however_large_they_are(table: Table) -> None:
    """DynamoDB ends an answer at 16 MB."""
    put(table, *(item(f"{number:03d}", content=b"x" * 390 * 1024) for number in range(45)))
    assert len(table.get_many([Key("A", f"{number:03d}") for number in range(45)])) == 45


@pytest.mark.parametrize("numbers", [range(101), (1, 2, 1)], ids=["too many", "twice"])
def test_a_read_of_too_many_items_or_of_one_twice_is_a_fault_of_the_server(table: Table, numbers: Sequence[int]) -> None:
    with pytest.raises(InternalError, match="more than 100 items, or for one of them twice"):
        table.get_many([Key("A", str(number)) for number in numbers])


def test_index_entries_with_equal_keys_are_all_found_page_by_page(table: Table) -> None:
    put(table, *(item("H", pk=f"run{number}", due="P", due_at="5") for number in range(5)))
    found = list(rows(table, Query("P", "5", "5", index="due", page_size=2)))
    assert sorted(str(entry["PK"]) for entry in found) == [f"run{number}" for number in range(5)]


def test_a_query_of_an_index_stops_at_its_bound(table: Table) -> None:
    put(table, *(item("H", pk=f"run{number}", due="P", due_at=f"{number}#x") for number in range(5)))
    assert [entry["PK"] for entry in rows(table, Query("P", "0", "2#~", index="due"))] == ["run0", "run1", "run2"]


def test_an_item_over_400_kb_is_refused_by_name(table: Table) -> None:
    with pytest.raises(PayloadTooLarge, match="the item A 1 is too large") as refused:
        put(table, item("1", content=b"x" * 400 * 1024))
    assert refused.value.fields == {"item": "A 1", "size": 409_600 + len("PKASK1content"), "limit": 409_600}
    assert table.get(Key("A", "1")) is None


def test_a_transaction_over_4_mb_or_100_writes_is_refused(table: Table) -> None:
    large = [Put(item(f"{number}", content=b"x" * 399 * 1024), Always()) for number in range(11)]
    with pytest.raises(PayloadTooLarge, match="too many bytes"):
        table.write(large, token="t")
    with pytest.raises(PayloadTooLarge, match="too many writes"):
        table.write([Put(item(f"{number}"), Always()) for number in range(101)], token="t")
    assert table.query(Query("A", "0", "9~")) == Page((), is_last=True)


def test_a_transaction_of_100_writes_is_applied(table: Table) -> None:
    table.write([Put(item(f"{number:03d}"), Absent()) for number in range(100)], token="t")
    assert len(table.query(Query("A", "0", "9~")).items) == 100


def test_deletes_count_among_the_100_writes_of_a_transaction(table: Table) -> None:
    put(table, *(item(f"{number:03d}", etag="a") for number in range(101)))
    deletes = [Delete(Key("A", f"{number:03d}"), EtagIs("a")) for number in range(100)]
    with pytest.raises(PayloadTooLarge, match="too many writes"):
        table.write([*deletes, Put(item("101"), Always())], token="t")
    assert len(table.query(Query("A", "0", "9~")).items) == 101
    table.write(deletes, token="t")
    assert keys_of(table.query(Query("A", "0", "9~"))) == ["100"]


@pytest.mark.parametrize("other", [Put(item("1"), Always()), Delete(Key("A", "1"), EtagIs("a"))], ids=["put", "delete"])
def test_a_transaction_that_names_an_item_twice_is_a_fault_of_the_server(table: Table, other: Put | Delete) -> None:
    with pytest.raises(InternalError, match="same item twice"):
        table.write([other, Delete(Key("A", "1"))], token="t")
