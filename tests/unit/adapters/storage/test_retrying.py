import pytest

from aiki_push.adapters.storage.memory.table import MemoryTable
from aiki_push.adapters.storage.retrying import RetryingTable
from aiki_push.adapters.storage.table import Absent, Key, Put, Query, WriteRefused
from aiki_push.domain.errors import PayloadTooLarge, StorageUnavailable
from aiki_push.domain.values import DurationMs
from aiki_push.testing import FakeClock, FaultyTable, SequentialEntropy

WRITE = [Put({"PK": "A", "SK": "1"}, Absent())]


class Highest:
    """Entropy whose fractions are as high as they get."""

    def token(self, size: int) -> bytes:
        return bytes(size)

    def fraction(self) -> float:
        return 0.999_999


def busy(_: object) -> None:
    raise StorageUnavailable("busy")


def test_delays_double_from_25_ms_up_to_a_second() -> None:
    table, clock = FaultyTable(MemoryTable()), FakeClock()
    called_at: list[float] = []

    def note(_: object) -> None:
        called_at.append(clock.monotonic_ms())
        raise StorageUnavailable("busy")

    table.before_write = note
    with pytest.raises(StorageUnavailable):
        RetryingTable(table, clock, Highest()).write(WRITE, token="t")
    delays = [after - before for before, after in zip(called_at, called_at[1:], strict=False)]
    assert delays == [25, 50, 100, 200, 400, 800, 1000, 1000, 1000]


def test_the_budget_bounds_the_waiting_and_the_error_tells_the_attempts() -> None:
    table, clock = FaultyTable(MemoryTable()), FakeClock()
    table.before_read = busy
    retrying = RetryingTable(table, clock, SequentialEntropy(), budget_ms=DurationMs(300))
    with pytest.raises(StorageUnavailable, match=r"^busy; gave up after \d+ attempts$"):
        retrying.get(Key("A", "1"))
    assert 0 < clock.slept_ms <= 300


def test_time_that_the_calls_themselves_take_counts_too() -> None:
    table, clock = FaultyTable(MemoryTable()), FakeClock()
    calls: list[object] = []

    def slow(query: object) -> None:
        calls.append(query)
        clock.advance(3_000)
        raise StorageUnavailable("busy")

    table.before_read = slow
    with pytest.raises(StorageUnavailable):
        RetryingTable(table, clock, SequentialEntropy()).query(Query("A", "0", "9"))
    assert len(calls) == 2


@pytest.mark.parametrize("error", [WriteRefused({0: None}), PayloadTooLarge("too large")], ids=["refused", "too large"])
def test_a_definite_answer_is_not_repeated(error: Exception) -> None:
    table, clock = FaultyTable(MemoryTable()), FakeClock()

    def fail(_: object) -> None:
        raise error

    table.before_write = fail
    with pytest.raises(type(error)):
        RetryingTable(table, clock, SequentialEntropy()).write(WRITE, token="t")
    assert clock.slept_ms == 0
