"""What the indexes say: which runs are due, ready, held, or next in a listing. They may lag behind the table."""

from collections.abc import Iterator, Sequence
from heapq import merge
from itertools import groupby, islice

from aiki_push.adapters.storage import keys
from aiki_push.adapters.storage.formats import Shards
from aiki_push.adapters.storage.table import INDEX_ATTRIBUTES, IndexName, Query, Table, rows
from aiki_push.domain.values import RunId, TimestampMs
from aiki_push.ports.store import DueRun, ListedRun, Listing, ListPlace, Queue

MAX_QUEUE_LOOKED_AT = 1_000
"""Entries at the beginning of a queue among which those with a due offer are looked for."""

QUEUE_PAGE = 100


class Indexes:
    """Reads of the indexes. Every method gives what the one of the same name in Store gives."""

    def __init__(self, table: Table, shards: Shards) -> None:
        self._table = table
        self._shards = shards

    def due_runs(self, until: TimestampMs, limit: int) -> tuple[DueRun, ...]:
        """See Store."""
        shards = [keys.due_until(shard, until, limit) for shard in range(self._shards.due)]
        return tuple(map(keys.due_run, islice(self._merged(shards), limit)))

    def ready_runs(self, queues: Sequence[Queue], limit: int) -> tuple[RunId, ...]:
        """See Store."""
        entries = self._merged([keys.ready_in(queue, limit) for queue in queues])
        return tuple(map(keys.ready_run, islice(entries, limit)))

    def due_offers(self, queue: Queue, until: TimestampMs, limit: int) -> tuple[RunId, ...]:
        """See Store."""
        entries = islice(rows(self._table, keys.ready_in(queue, QUEUE_PAGE)), MAX_QUEUE_LOOKED_AT)
        due = (entry for entry in entries if "due_at" in entry and keys.is_due(str(entry["due_at"]), until))
        return tuple(keys.ready_run(str(entry["ready_at"])) for entry in islice(due, limit))

    def claimed_runs(self, namespace: str, request_id: str) -> tuple[RunId, ...]:
        """See Store."""
        return tuple(map(keys.ready_run, self._merged([keys.claimed_by(namespace, request_id)])))

    def newest_runs(self, listing: Listing, before: ListPlace | None, limit: int) -> tuple[ListedRun, ...]:
        """See Store.

        A run that changes from one group of states to the next while both are read may be met twice, side by side.
        """
        index, partitions = self._partitions(listing)
        queries = [keys.listed(index, partition, before, limit) for partition in partitions]
        different = (entry for entry, _ in groupby(self._merged(queries)))
        return tuple(map(keys.listed_run, islice(different, limit)))

    def _partitions(self, listing: Listing) -> tuple[IndexName, Sequence[str]]:
        shards = self._shards.listing
        if listing.workflow is not None:
            return "by_workflow", keys.list_partitions(listing.namespace, listing.workflow, shards)
        groups = keys.GROUPS if listing.status is None else [keys.group_of(listing.status)]
        return "by_state", [one for group in groups for one in keys.list_partitions(listing.namespace, group, shards)]

    def _merged(self, queries: Sequence[Query]) -> Iterator[str]:
        """The sort keys of the entries that the queries of one index match, in the one order that all of them have."""
        return merge(*map(self._sort_keys, queries), reverse=not all(query.ascending for query in queries))

    def _sort_keys(self, query: Query) -> Iterator[str]:
        assert query.index is not None, "the table itself is not merged"
        name = INDEX_ATTRIBUTES[query.index][1]
        return (str(entry[name]) for entry in rows(self._table, query))
