"""Durable truth."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from aiki_push.domain.changes import Change
from aiki_push.domain.endpoints import Endpoint
from aiki_push.domain.errors import AikiError
from aiki_push.domain.inbox import Message, Watcher
from aiki_push.domain.log_records import LogSlot
from aiki_push.domain.run import Run, RunReference
from aiki_push.domain.run_states import Status
from aiki_push.domain.values import RunId, TimestampMs


@dataclass(frozen=True, slots=True)
class SentEvent:
    """An event that was sent with a reference, so that it is not sent to this run again."""

    event: str
    reference: str


Found: TypeAlias = Run | RunReference | LogSlot | Message | Watcher | SentEvent | Endpoint | None


@dataclass(frozen=True, slots=True)
class Refusal:
    """A change whose condition failed, and what the store holds in its place."""

    change: Change
    found: Found


class CommitRefused(AikiError):
    """Nothing was written: the conditions of `refusals` failed. Read again and decide again, or stop."""

    def __init__(self, refusals: Sequence[Refusal]) -> None:
        super().__init__(f"{len(refusals)} of the commit's conditions failed")
        self.refusals = tuple(refusals)

    def found_slot(self) -> LogSlot | None:
        """The slot that stood in the way, if a slot did."""
        return next((one.found for one in self.refusals if isinstance(one.found, LogSlot)), None)

    def found_event(self) -> SentEvent | None:
        """The event that was sent before, if one stood in the way."""
        return next((one.found for one in self.refusals if isinstance(one.found, SentEvent)), None)

    def found_run(self) -> Run | None:
        """The run that stood in the way, if one did."""
        return next((one.found for one in self.refusals if isinstance(one.found, Run)), None)


@dataclass(frozen=True, slots=True)
class RunContents:
    """A run as one consistent read sees it: `slots` and `messages` in order; `is_complete` is False where more slots follow.

    More messages follow where the last one is not the header's `inbox_seq`th.
    """

    run: Run
    slots: tuple[LogSlot, ...]
    messages: tuple[Message, ...]
    is_complete: bool


@dataclass(frozen=True, slots=True)
class LogPage:
    """Slots in order, and whether these were the last."""

    slots: tuple[LogSlot, ...]
    is_last: bool


@dataclass(frozen=True, slots=True)
class DueRun:
    """An entry of the due index."""

    namespace: str
    run_id: RunId
    due_at: TimestampMs


@dataclass(frozen=True, slots=True)
class Queue:
    """Runs of one workflow version in one pool; `pool` is None for runs without one."""

    namespace: str
    workflow: str
    version: str
    pool: str | None


@dataclass(frozen=True, slots=True)
class Listing:
    """Which runs to list: those of a workflow, or else those that may be in `status`, or else all of the namespace.

    The index of states is coarse: a status that is neither final nor `stalled` brings all the runs that are under way.
    """

    namespace: str
    workflow: str | None = None
    status: Status | None = None


@dataclass(frozen=True, slots=True)
class ListPlace:
    """A place in every listing; a run has the same one for life. The newest come first."""

    created_at: TimestampMs
    run_id: RunId


@dataclass(frozen=True, slots=True)
class ListedRun:
    """An entry of a listing."""

    place: ListPlace
    version: str


class Store(Protocol):
    """Durable truth. There is no open transaction: read, decide, commit once. Safe to call from any thread.

    Every method raises StorageUnavailable when the table is throttled or does not answer within the store's time budget.
    Reads are strongly consistent, but those of the indexes (`due_runs`, `ready_runs`, `due_offers`, `claimed_runs`, `newest_runs`),
    which may lag: whoever reads them loads the header before acting.
    """

    def load(self, namespace: str, run_id: str) -> Run:
        """The header. Raises NotFound."""
        ...

    def load_many(self, namespace: str, run_ids: Sequence[RunId]) -> tuple[Run, ...]:
        """The headers of different runs, read in batches, in the order asked for. Left out: what is not there or cannot be read."""
        ...

    def reference(self, namespace: str, workflow: str, version: str, reference: str) -> RunReference | None:
        """What `reference` names, None where it was never used. The run that it names may be gone."""
        ...

    def load_contents(self, namespace: str, run_id: str, *, max_bytes: int) -> RunContents:
        """Header, inbox and log by one consistent read, up to about `max_bytes` of JSON, half of it messages. Raises NotFound."""
        ...

    def log(self, namespace: str, run_id: str, *, after: int, max_bytes: int) -> LogPage:
        """Slots at positions greater than `after` (-1 for all), in order, up to about `max_bytes` of JSON and at least one."""
        ...

    def last_slot(self, namespace: str, run_id: str) -> LogSlot | None:
        """The slot at the highest position that exists as an item; None where the whole log is still in the tail."""
        ...

    def inbox(self, namespace: str, run_id: str, *, after: int, max_bytes: int | None = None) -> tuple[Message, ...]:
        """Messages with a number greater than `after`, in order, up to about `max_bytes` of JSON and at least one; None: all."""
        ...

    def watchers(self, namespace: str, run_id: str, *, limit: int) -> tuple[Watcher, ...]:
        """Those still to be told of the run's end, at most `limit`, by consistent read, in the order of their ids."""
        ...

    def commit(self, *changes: Change) -> None:
        """Apply all of `changes` or none: one conditional write, or one transaction of at most 100 different items.

        An answer lost on the way is resolved by what is there: a write that turns out to have been ours is a success.
        Raises CommitRefused (a condition failed, nothing was written), PayloadTooLarge (never retried).
        """
        ...

    def due_runs(self, *, until: TimestampMs, limit: int) -> tuple[DueRun, ...]:
        """Runs of all namespaces with `due_at` <= `until`, the earliest first, at most `limit`."""
        ...

    def ready_runs(self, *queues: Queue, limit: int) -> tuple[RunId, ...]:
        """Queued runs of all `queues` together by ready time, then priority, then id, at most `limit`."""
        ...

    def due_offers(self, queue: Queue, *, until: TimestampMs, limit: int) -> tuple[RunId, ...]:
        """As `ready_runs` of one queue, but only those with `due_at` <= `until`. Of a very long queue only the beginning is looked at."""
        ...

    def claimed_runs(self, namespace: str, request_id: str) -> tuple[RunId, ...]:
        """The runs that are held by claims of this pulling request, in the order of `ready_runs`."""
        ...

    def newest_runs(self, listing: Listing, *, before: ListPlace | None, limit: int) -> tuple[ListedRun, ...]:
        """Entries after the place `before` (None: from the newest on), at most `limit`; fewer only where the listing ends.

        A run that does not change is there exactly once, whatever others do meanwhile.
        """
        ...

    def endpoint(self, namespace: str, endpoint_id: str) -> Endpoint:
        """One endpoint. Raises NotFound."""
        ...

    def endpoints(self, namespace: str) -> tuple[Endpoint, ...]:
        """All endpoints of the namespace, by id."""
        ...
