"""The table as a dictionary: for tests, simulations and a server that keeps nothing."""

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterator, Sequence
from threading import Lock
from types import MappingProxyType

from aiki_push.adapters.storage.sizes import check_batch, check_limits
from aiki_push.adapters.storage.table import (
    INDEX_ATTRIBUTES,
    INDEX_EXTRAS,
    Absent,
    Condition,
    EtagIs,
    IndexName,
    Item,
    Key,
    Page,
    Put,
    Query,
    Write,
    WriteRefused,
)

_LAST = "\U0010ffff"


class _Partition:
    """Items in the order of their sort keys. A sort key is a tuple: where the first parts are equal, the next ones order."""

    def __init__(self) -> None:
        self._order: list[tuple[str, ...]] = []
        self._items: dict[tuple[str, ...], Item] = {}

    def get(self, sort_key: tuple[str, ...]) -> Item | None:
        return self._items.get(sort_key)

    def put(self, sort_key: tuple[str, ...], item: Item) -> None:
        if sort_key not in self._items:
            insort(self._order, sort_key)
        self._items[sort_key] = item

    def remove(self, sort_key: tuple[str, ...]) -> None:
        if self._items.pop(sort_key, None) is not None:
            del self._order[bisect_left(self._order, sort_key)]

    def page(self, query: Query, after: tuple[str, ...] | None) -> Page:
        """As Table.query; `after` is the sort key of the item that the page follows."""
        start = bisect_left(self._order, (query.low,))
        end = bisect_right(self._order, (query.high, _LAST))
        if after is not None and query.ascending:
            start = bisect_right(self._order, after)
        elif after is not None:
            end = bisect_left(self._order, after)
        places = range(start, end) if query.ascending else range(end - 1, start - 1, -1)
        items = tuple(self._items[self._order[place]] for place in places[: query.page_size])
        return Page(items, is_last=len(items) == len(places))


class MemoryTable:
    """A Table that one lock makes atomic. Items are kept as encoded and cannot be changed through what was handed over."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._partitions: dict[tuple[IndexName | None, str], _Partition] = {}

    def get(self, key: Key) -> Item | None:
        """See Table."""
        with self._lock:
            return self._found(key)

    def get_many(self, keys: Sequence[Key]) -> Sequence[Item]:
        """See Table."""
        check_batch(keys)
        with self._lock:
            return [item for key in keys if (item := self._found(key)) is not None]

    def write(self, writes: Sequence[Write], token: str) -> None:  # noqa: ARG002 - a repetition is seen by the conditions alone
        """See Table."""
        check_limits(writes)
        with self._lock:
            refused = {
                place: found for place, write in enumerate(writes) if not _holds(write.condition, found := self._found(write.key))
            }
            if refused:
                raise WriteRefused(refused)
            for write in writes:
                self._apply(write)

    def query(self, query: Query, after: Item | None = None) -> Page:
        """See Table."""
        with self._lock:
            partition = self._partitions.get((query.index, query.pk))
            if partition is None:
                return Page((), is_last=True)
            return partition.page(query, None if after is None else _sort_key(query.index, after))

    def _found(self, key: Key) -> Item | None:
        partition = self._partitions.get((None, key.pk))
        return None if partition is None else partition.get((key.sk,))

    def _apply(self, write: Write) -> None:
        old = self._found(write.key)
        new = MappingProxyType(dict(write.item)) if isinstance(write, Put) else None
        if old is not None:
            for index, pk, _ in _places(old):
                self._partitions[index, pk].remove(_sort_key(index, old))
        if new is not None:
            for index, pk, entry in _places(new):
                self._partitions.setdefault((index, pk), _Partition()).put(_sort_key(index, new), entry)


def _holds(condition: Condition, found: Item | None) -> bool:
    match condition:
        case Absent():
            return found is None
        case EtagIs(etag):
            return found is not None and found.get("etag") == etag
        case _:
            return True


def _sort_key(index: IndexName | None, item: Item) -> tuple[str, ...]:
    if index is None:
        return (str(item["SK"]),)
    return (str(item[INDEX_ATTRIBUTES[index][1]]), str(item["PK"]), str(item["SK"]))


def _places(item: Item) -> Iterator[tuple[IndexName | None, str, Item]]:
    """Where `item` is kept: in the table as it is, and in each index whose attributes it has, as the entry found there."""
    yield None, str(item["PK"]), item
    for index, names in INDEX_ATTRIBUTES.items():
        if names[0] in item and names[1] in item:
            shown = ("PK", "SK", *names, *INDEX_EXTRAS[index])
            yield index, str(item[names[0]]), MappingProxyType({name: item[name] for name in shown if name in item})
