"""Tables around a table: one counts what is asked of it, one fails when told to."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from threading import Lock

from aiki_push.adapters.storage.sizes import item_size, write_units
from aiki_push.adapters.storage.table import Item, Key, Page, Put, Query, Table, Write


@dataclass(slots=True)
class Counts:
    """What a table was asked for. `write_units` are those of the items, without indexes; a refused write costs its units too."""

    single_writes: int = 0
    transactions: int = 0
    items_written: int = 0
    write_units: int = 0
    gets: int = 0
    batch_gets: int = 0
    queries: int = 0


class CountingTable:
    """A Table that counts in `counts`; `reset()` starts anew. Each page of a query is one."""

    def __init__(self, table: Table) -> None:
        self._table = table
        self._lock = Lock()
        self.counts = Counts()

    def reset(self) -> Counts:
        """Start counting anew; gives the counts so far."""
        with self._lock:
            counts, self.counts = self.counts, Counts()
        return counts

    def get(self, key: Key) -> Item | None:
        """See Table."""
        with self._lock:
            self.counts.gets += 1
        return self._table.get(key)

    def get_many(self, keys: Sequence[Key]) -> Sequence[Item]:
        """See Table."""
        with self._lock:
            self.counts.batch_gets += 1
        return self._table.get_many(keys)

    def write(self, writes: Sequence[Write], token: str) -> None:
        """See Table."""
        is_transaction = len(writes) > 1
        units = sum(self._units(write) for write in writes) * (2 if is_transaction else 1)
        with self._lock:
            self.counts.single_writes += not is_transaction
            self.counts.transactions += is_transaction
            self.counts.write_units += units
        self._table.write(writes, token)
        with self._lock:
            self.counts.items_written += len(writes)

    def query(self, query: Query, after: Item | None = None) -> Page:
        """See Table."""
        with self._lock:
            self.counts.queries += 1
        return self._table.query(query, after)

    def _units(self, write: Write) -> int:
        """DynamoDB bills the larger of the item before and the item after."""
        old = self._table.get(write.key)
        new = write.item if isinstance(write, Put) else None
        return max(write_units(item_size(item)) for item in (old or {}, new or {}))


def _nothing(_: object) -> None:
    pass


class FaultyTable:
    """A Table with hooks that tests set; a hook that raises makes the call fail there.

    `before_write` fails a write that did not happen, `after_write` one that did, and whose answer is lost; both get the writes.
    `before_read` gets the query or the key, every key where many are read at once.
    """

    def __init__(self, table: Table) -> None:
        self._table = table
        self.before_write: Callable[[Sequence[Write]], None] = _nothing
        self.after_write: Callable[[Sequence[Write]], None] = _nothing
        self.before_read: Callable[[Key | Query], None] = _nothing

    def get(self, key: Key) -> Item | None:
        """See Table."""
        self.before_read(key)
        return self._table.get(key)

    def get_many(self, keys: Sequence[Key]) -> Sequence[Item]:
        """See Table."""
        for key in keys:
            self.before_read(key)
        return self._table.get_many(keys)

    def write(self, writes: Sequence[Write], token: str) -> None:
        """See Table."""
        self.before_write(writes)
        self._table.write(writes, token)
        self.after_write(writes)

    def query(self, query: Query, after: Item | None = None) -> Page:
        """See Table."""
        self.before_read(query)
        return self._table.query(query, after)
