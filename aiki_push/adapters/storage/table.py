"""One table of raw items: what every engine offers, and all that the stores in this folder are written on."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, Protocol, TypeAlias

from aiki_push.domain.errors import AikiError

AttributeValue: TypeAlias = str | int | bytes
Item: TypeAlias = Mapping[str, AttributeValue]
"""Attributes by name. `PK` and `SK` are its key; nobody changes an item once it was handed over."""

IndexName = Literal["due", "ready", "by_workflow", "by_state"]
INDEX_ATTRIBUTES: Mapping[IndexName, tuple[str, str]] = {
    "due": ("due", "due_at"),
    "ready": ("ready", "ready_at"),
    "by_workflow": ("by_workflow", "created"),
    "by_state": ("by_state", "created"),
}
"""Partition and sort attribute of each index. An item is in an index while it has both."""

INDEX_EXTRAS: Mapping[IndexName, tuple[str, ...]] = {"due": (), "ready": ("due_at",), "by_workflow": (), "by_state": ()}
"""What the entries of each index have beside these two and the item's key."""


class Key(NamedTuple):
    """Where an item lies."""

    pk: str
    sk: str

    def __str__(self) -> str:
        return f"{self.pk} {self.sk}"


def key_of(item: Item) -> Key:
    """The key that `item` carries."""
    return Key(str(item["PK"]), str(item["SK"]))


@dataclass(frozen=True, slots=True)
class Always:
    """Whatever is there."""


@dataclass(frozen=True, slots=True)
class Absent:
    """Only where nothing is."""


@dataclass(frozen=True, slots=True)
class EtagIs:
    """Only where an item with this `etag` is."""

    etag: str


Condition: TypeAlias = Always | Absent | EtagIs
DeleteCondition: TypeAlias = Always | EtagIs


@dataclass(frozen=True, slots=True)
class Put:
    """Write `item` as a whole, in place of what its key holds."""

    item: Item
    condition: Condition

    @property
    def key(self) -> Key:
        """The item's key."""
        return key_of(self.item)


@dataclass(frozen=True, slots=True)
class Delete:
    """Remove the item; with `Always`, if it is there."""

    key: Key
    condition: DeleteCondition = Always()


Write: TypeAlias = Put | Delete


class WriteRefused(AikiError):
    """Nothing was written. `found` has, for the place of each refused write, the item that is there instead, if any."""

    def __init__(self, found: Mapping[int, Item | None]) -> None:
        super().__init__(f"{len(found)} of the write's conditions failed")
        self.found = found


@dataclass(frozen=True, slots=True)
class Query:
    """The items of one partition whose sort key lies in [`low`, `high`], bytewise, of the table or of an index."""

    pk: str
    low: str
    high: str
    index: IndexName | None = None
    ascending: bool = True
    page_size: int | None = None


@dataclass(frozen=True, slots=True)
class Page:
    """Items in order; `is_last` is False where more may follow."""

    items: Sequence[Item]
    is_last: bool


class Table(Protocol):
    """Items under PK and SK, and sparse indexes. Safe to call from any thread.

    Every method raises StorageUnavailable when nothing definite is known; repeating the call is safe.
    """

    def get(self, key: Key) -> Item | None:
        """The item, by consistent read; None where nothing is."""
        ...

    def get_many(self, keys: Sequence[Key]) -> Sequence[Item]:
        """Those of the items that are there, by consistent read, in any order; at most 100 different keys."""
        ...

    def write(self, writes: Sequence[Write], token: str) -> None:
        """Apply all of `writes` or none: one conditional write if it is one, otherwise a transaction.

        `token` (1 to 36 characters) names this write and is the same when it is repeated, which DynamoDB then recognises.
        Raises WriteRefused (conditions failed), PayloadTooLarge (an item or the whole is over its limit).
        """
        ...

    def query(self, query: Query, after: Item | None = None) -> Page:
        """The first page, or the one that follows the item `after`. Consistent, but for indexes, which may lag."""
        ...


def rows(table: Table, query: Query) -> Iterator[Item]:
    """Every item that `query` matches, in order, read page by page as they are taken."""
    after: Item | None = None
    while True:
        page = table.query(query, after)
        yield from page.items
        if page.is_last:
            return
        after = page.items[-1]
