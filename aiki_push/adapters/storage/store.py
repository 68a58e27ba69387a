"""The store port on one table."""

from base64 import urlsafe_b64encode
from collections.abc import Iterable, Sequence
from itertools import groupby, islice

from aiki_push.adapters.storage import formats, keys
from aiki_push.adapters.storage.indexes import Indexes
from aiki_push.adapters.storage.retrying import RetryingTable
from aiki_push.adapters.storage.sizes import MAX_BATCH_READS
from aiki_push.adapters.storage.table import Item, Table, WriteRefused, rows
from aiki_push.adapters.storage.writes import write_of
from aiki_push.domain.changes import Change
from aiki_push.domain.endpoints import Endpoint
from aiki_push.domain.errors import InternalError, NotFound, UnsupportedVersion
from aiki_push.domain.inbox import Message, Watcher
from aiki_push.domain.log_records import LogSlot
from aiki_push.domain.run import Run, RunReference
from aiki_push.domain.values import RunId, TimestampMs
from aiki_push.ports.clock import Clock
from aiki_push.ports.entropy import Entropy
from aiki_push.ports.store import CommitRefused, DueRun, ListedRun, Listing, ListPlace, LogPage, Queue, Refusal, RunContents

ETAG_BYTES = 12


class SingleTableStore:
    """A Store on any Table.

    `due_shards` is the number of partitions of the due index, `list_shards` that of each listed workflow and group of states.
    They may be raised at any time and never lowered while runs exist: readers ask the shards below them and no others.
    """

    def __init__(self, table: Table, clock: Clock, entropy: Entropy, *, due_shards: int = 1, list_shards: int = 1) -> None:
        self._table = RetryingTable(table, clock, entropy)
        self._entropy = entropy
        self._shards = formats.Shards(due_shards, list_shards)
        self._indexes = Indexes(self._table, self._shards)

    def load(self, namespace: str, run_id: str) -> Run:
        """See Store."""
        item = self._table.get(keys.header(namespace, run_id))
        if item is None:
            raise _no_run(run_id)
        return formats.read_header(item)

    def load_many(self, namespace: str, run_ids: Sequence[RunId]) -> tuple[Run, ...]:
        """See Store."""
        found: dict[RunId, Run] = {}
        for start in range(0, len(run_ids), MAX_BATCH_READS):
            wanted = [keys.header(namespace, run_id) for run_id in run_ids[start : start + MAX_BATCH_READS]]
            found |= {run.id: run for item in self._table.get_many(wanted) if (run := _readable(item))}
        return tuple(found[run_id] for run_id in run_ids if run_id in found)

    def reference(self, namespace: str, workflow: str, version: str, reference: str) -> RunReference | None:
        """See Store."""
        item = self._table.get(keys.reference(namespace, workflow, version, reference))
        return None if item is None else formats.read_reference(item)

    def load_contents(self, namespace: str, run_id: str, *, max_bytes: int) -> RunContents:
        """See Store."""
        header: Run | None = None
        messages: tuple[Message, ...] = ()
        log = LogPage((), is_last=True)
        for kind, items in groupby(rows(self._table, keys.contents(namespace, run_id)), key=lambda item: str(item["SK"])[0]):
            if kind == "H":
                header = formats.read_header(next(items))
            elif kind == "I":
                first, _ = _within(items, max_bytes // 2)
                messages = tuple(map(formats.read_message, first))
                max_bytes -= sum(map(formats.json_size, first))
            else:
                log = _log_page(items, max_bytes)
                break
        if header is None:
            raise _no_run(run_id)
        return RunContents(header, log.slots, messages, log.is_last)

    def log(self, namespace: str, run_id: str, *, after: int, max_bytes: int) -> LogPage:
        """See Store."""
        return _log_page(rows(self._table, keys.slots(namespace, run_id, after=after)), max_bytes)

    def last_slot(self, namespace: str, run_id: str) -> LogSlot | None:
        """See Store."""
        item = next(rows(self._table, keys.last_slot(namespace, run_id)), None)
        return None if item is None else formats.read_slot(item)

    def inbox(self, namespace: str, run_id: str, *, after: int, max_bytes: int | None = None) -> tuple[Message, ...]:
        """See Store."""
        items = rows(self._table, keys.messages(namespace, run_id, after=after))
        return tuple(map(formats.read_message, items if max_bytes is None else _within(items, max_bytes)[0]))

    def watchers(self, namespace: str, run_id: str, *, limit: int) -> tuple[Watcher, ...]:
        """See Store."""
        return tuple(map(formats.read_watcher, islice(rows(self._table, keys.watchers(namespace, run_id, limit)), limit)))

    def commit(self, *changes: Change) -> None:
        """See Store.

        Every item of a commit carries the same fresh etag, and a commit is all or nothing. So a refused write that finds this
        etag proves that the whole commit was written, by an attempt whose answer was lost. What was deleted proves nothing: a
        commit that only deletes, and whose answer was lost, finds nothing there and is refused.
        """
        if not changes:
            return
        etag = urlsafe_b64encode(self._entropy.token(ETAG_BYTES)).decode()
        try:
            self._table.write([write_of(change, etag, self._shards) for change in changes], token=etag)
        except WriteRefused as refused:
            if any(item is not None and item.get("etag") == etag for item in refused.found.values()):
                return
            raise CommitRefused(
                [
                    Refusal(changes[index], None if item is None else formats.read(item))
                    for index, item in sorted(refused.found.items(), key=lambda entry: entry[0])
                ]
            ) from None

    def due_runs(self, *, until: TimestampMs, limit: int) -> tuple[DueRun, ...]:
        """See Store."""
        return self._indexes.due_runs(until, limit)

    def ready_runs(self, *queues: Queue, limit: int) -> tuple[RunId, ...]:
        """See Store."""
        return self._indexes.ready_runs(queues, limit)

    def due_offers(self, queue: Queue, *, until: TimestampMs, limit: int) -> tuple[RunId, ...]:
        """See Store."""
        return self._indexes.due_offers(queue, until, limit)

    def claimed_runs(self, namespace: str, request_id: str) -> tuple[RunId, ...]:
        """See Store."""
        return self._indexes.claimed_runs(namespace, request_id)

    def newest_runs(self, listing: Listing, *, before: ListPlace | None, limit: int) -> tuple[ListedRun, ...]:
        """See Store."""
        return self._indexes.newest_runs(listing, before, limit)

    def endpoint(self, namespace: str, endpoint_id: str) -> Endpoint:
        """See Store."""
        item = self._table.get(keys.endpoint(namespace, endpoint_id))
        if item is None:
            raise NotFound(f"there is no endpoint {endpoint_id} in this namespace", endpoint_id=endpoint_id)
        return formats.read_endpoint(item)

    def endpoints(self, namespace: str) -> tuple[Endpoint, ...]:
        """See Store."""
        return tuple(map(formats.read_endpoint, rows(self._table, keys.endpoints(namespace))))


def _log_page(items: Iterable[Item], max_bytes: int) -> LogPage:
    first, is_last = _within(items, max_bytes)
    return LogPage(tuple(map(formats.read_slot, first)), is_last)


def _within(items: Iterable[Item], max_bytes: int) -> tuple[list[Item], bool]:
    """The first of `items`, up to `max_bytes` of JSON and at least one, and whether these are all."""
    first: list[Item] = []
    size = 0
    for item in items:
        size += formats.json_size(item)
        if first and size > max_bytes:
            return first, False
        first.append(item)
    return first, True


def _readable(item: Item) -> Run | None:
    try:
        return formats.read_header(item)
    except (InternalError, UnsupportedVersion):
        return None


def _no_run(run_id: str) -> NotFound:
    return NotFound(f"there is no run {run_id} in this namespace", run_id=run_id)
