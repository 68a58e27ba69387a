from concurrent.futures import ThreadPoolExecutor

import pytest

from aiki_push.adapters.storage.memory.table import MemoryTable
from aiki_push.adapters.storage.table import Absent, Always, Delete, Key, Put, Query, WriteRefused
from aiki_push.domain.errors import StorageUnavailable
from aiki_push.domain.values import DurationMs, TimestampMs
from aiki_push.testing import FAKE_NOW, CountingTable, Counts, FakeClock, FaultyTable, SequentialEntropy


def put(sk: str, content: int = 0) -> Put:
    return Put({"PK": "A", "SK": sk, "d": b"x" * content}, Always())


def test_a_fake_clock_stands_still_until_it_is_advanced_set_or_slept_on() -> None:
    clock = FakeClock()
    assert (clock.now(), clock.now(), clock.monotonic_ms()) == (FAKE_NOW, FAKE_NOW, 0.0)
    clock.advance(5)
    clock.sleep(DurationMs(7))
    assert (clock.now(), clock.monotonic_ms(), clock.slept_ms) == (FAKE_NOW + 12, 12.0, 7)
    clock.set(TimestampMs(1))
    assert (clock.now(), clock.monotonic_ms()) == (1, 12.0)


def test_a_fake_clock_loses_no_advance_of_any_thread() -> None:
    clock = FakeClock(TimestampMs(0))
    with ThreadPoolExecutor(4) as threads:
        list(threads.map(lambda _: clock.advance(1), range(1000)))
    assert (clock.now(), clock.monotonic_ms()) == (1000, 1000.0)


def test_sequential_entropy_counts_in_bytes_of_any_size() -> None:
    entropy = SequentialEntropy()
    assert [entropy.token(2), entropy.token(1), entropy.token(10)] == [b"\x00\x01", b"\x02", bytes(9) + b"\x03"]
    assert SequentialEntropy(first=257).token(1) == b"\x01"


def test_sequential_fractions_are_the_same_each_time_and_spread_over_the_unit() -> None:
    first, second = SequentialEntropy(), SequentialEntropy()
    fractions = [first.fraction() for _ in range(1000)]
    assert fractions == [second.fraction() for _ in range(1000)]
    assert {int(fraction * 10) for fraction in fractions[:20]} == set(range(10))
    assert all(0 <= fraction < 1 for fraction in fractions)


def test_a_counting_table_counts_writes_by_kind_and_reads_by_page() -> None:
    table = CountingTable(MemoryTable())
    table.write([put("1")], token="t")
    table.write([put("2", 1500), put("3")], token="t")
    table.get(Key("A", "1"))
    table.query(Query("A", "0", "9", page_size=1))
    assert table.counts == Counts(
        single_writes=1, transactions=1, items_written=3, write_units=1 + 2 * (2 + 1), gets=1, queries=1
    )
    assert table.reset().items_written == 3
    assert table.counts == Counts()


def test_write_units_are_those_of_the_larger_of_the_old_and_the_new_item() -> None:
    table = CountingTable(MemoryTable())
    table.write([put("1", 5000)], token="t")
    table.reset()
    table.write([put("1")], token="t")
    assert table.reset().write_units == 5
    table.write([put("1", 2000)], token="t")
    assert table.reset().write_units == 2
    table.write([Delete(Key("A", "1"))], token="t")
    assert table.reset().write_units == 2
    table.write([Delete(Key("A", "1"))], token="t")
    assert table.reset().write_units == 1


def test_a_refused_write_counts_its_units_and_no_item() -> None:
    table = CountingTable(MemoryTable())
    table.write([put("1")], token="t")
    table.reset()
    with pytest.raises(WriteRefused):
        table.write([Put({"PK": "A", "SK": "1"}, Absent()), put("2")], token="t")
    assert table.counts == Counts(transactions=1, write_units=4)


def test_a_faulty_table_does_what_its_table_does_until_it_is_told_to_fail() -> None:
    table = FaultyTable(MemoryTable())
    table.write([put("1")], token="t")
    assert table.get(Key("A", "1")) == put("1").item
    assert table.query(Query("A", "0", "9")).items == (put("1").item,)


def test_a_faulty_table_fails_before_a_write_or_after_it() -> None:
    table = FaultyTable(MemoryTable())

    def fail(_: object) -> None:
        raise StorageUnavailable("injected")

    table.before_write = fail
    with pytest.raises(StorageUnavailable):
        table.write([put("1")], token="t")
    assert table.get(Key("A", "1")) is None
    table.before_write = lambda _: None
    table.after_write = fail
    with pytest.raises(StorageUnavailable):
        table.write([put("2")], token="t")
    assert table.get(Key("A", "2")) is not None
    table.before_read = fail
    with pytest.raises(StorageUnavailable):
        table.get(Key("A", "2"))
    with pytest.raises(StorageUnavailable):
        table.query(Query("A", "0", "9"))
