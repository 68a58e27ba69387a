"""Servers with a fault in who may do what, to see that it is found. Most are a store that makes something else of a decision."""

from typing import TypeVar

from aiki_push.adapters.storage.store import SingleTableStore
from aiki_push.adapters.storage.table import Table
from aiki_push.domain.changes import (
    Change,
    PutMessage,
    PutSlot,
    SaveRun,
)
from aiki_push.domain.log_records import AnyRecord, LogSlot, Tail
from aiki_push.domain.run import Run
from aiki_push.domain.run_states import PARKED, Queued, QueuedReason, Running
from aiki_push.domain.run_transitions import keep_in_tail, queue
from aiki_push.ports.api.checkpoints import AppendCheckpoint, Park
from aiki_push.ports.api.operation import Operation
from aiki_push.ports.clock import Clock
from aiki_push.ports.entropy import Entropy
from aiki_push.server.context import ServerContext
from aiki_push.server.service import Server

R = TypeVar("R")


class SpoilingStore(SingleTableStore):
    """Spoils changes, or what is read."""

    def __init__(self, table: Table, clock: Clock, entropy: Entropy) -> None:
        super().__init__(table, clock, entropy)
        self.clock = clock

    def commit(self, *changes: Change) -> None:
        """See Store."""
        super().commit(*self.spoiled(changes))

    def spoiled(self, changes: tuple[Change, ...]) -> tuple[Change, ...]:
        """What is written in place of `changes`."""
        return tuple(spoiled for change in changes if (spoiled := self.spoiled_one(change, changes)))

    def spoiled_one(self, change: Change, changes: tuple[Change, ...]) -> Change | None:  # noqa: ARG002 - for subclasses
        """What is written in place of one of `changes`, if anything."""
        return self.spoiled_run(change.run) if isinstance(change, SaveRun) else change

    def spoiled_run(self, run: Run) -> SaveRun | None:
        """The header that is written in place of `run`, if any."""
        return SaveRun(run)


class UnfencedStore(SpoilingStore):
    """Takes a run from its owner without taking its next slot: the records are kept in the header."""

    takings: tuple[str, ...] = ("queued",)

    def spoiled(self, changes: tuple[Change, ...]) -> tuple[Change, ...]:
        """See SpoilingStore."""
        match changes:
            case (SaveRun(run), PutSlot(slot=LogSlot(claim_id=None) as slot)) if self.takes_away(run, slot):
                return (SaveRun(run.model_copy(update={"tail": Tail(position=slot.position, records=slot.records)})),)
            case _:
                return changes

    def takes_away(self, run: Run, slot: LogSlot) -> bool:
        """Whether the run had an owner until now."""
        return run.state.status in self.takings and getattr(slot.records[-1], "origin", "") == "running"


class UnfencedStopStore(UnfencedStore):
    """The same where a run is paused or cancelled."""

    takings = ("paused", "cancelled")


class UnfencedWakeStore(SpoilingStore):
    """An event wakes a run that is being executed, without asking its owner."""

    status = "running"
    reason: QueuedReason = "yield"

    def spoiled(self, changes: tuple[Change, ...]) -> tuple[Change, ...]:
        """See SpoilingStore."""
        match changes:
            case (SaveRun(run), PutMessage(message=message), *others) if run.state.status == self.status:
                woken, record = queue(run, Queued(reason=self.reason), message.at)
                return (*keep_in_tail(woken, (record,), message.at), changes[1], *others)
            case _:
                return changes


class RestlessStore(UnfencedWakeStore):
    """An event wakes a paused run."""

    status = "paused"
    reason = "resumption"


class ObliviousStore(SpoilingStore):
    """Operations are not remembered."""

    def spoiled_run(self, run: Run) -> SaveRun | None:
        """See SpoilingStore."""
        return SaveRun(run.model_copy(update={"operations": ()}))


class UndirectedStore(SpoilingStore):
    """Whoever recovers a run does not see what its owner was directed to do."""

    def load(self, namespace: str, run_id: str) -> Run:
        """See Store."""
        run = super().load(namespace, run_id)
        is_stale = isinstance(run.state, Running) and run.due_at is not None and run.due_at <= self.clock.now()
        return run.model_copy(update={"directive": None}) if is_stale else run


class SleepyStore(SpoilingStore):
    """A run that is resumed forgets until when it sleeps."""

    def spoiled_run(self, run: Run) -> SaveRun | None:
        """See SpoilingStore."""
        is_resumed = run.state.status in PARKED and bool(run.tail.records) and _origin(run.tail.records[-1]) == "paused"
        return SaveRun(run.model_copy(update={"due_at": None})) if is_resumed else SaveRun(run)


def _origin(record: AnyRecord) -> str | None:
    return getattr(record, "origin", None)


class HastyServer(Server):
    """Takes every park for one that has seen all messages."""

    def __init__(self, context: ServerContext) -> None:
        super().__init__(context)
        self._store = context.store

    def call(self, namespace: str, operation: Operation[R]) -> R:
        """See Server."""
        asked = operation
        if isinstance(asked, AppendCheckpoint) and isinstance(asked.end, Park):
            end = asked.end.model_copy(update={"seen_seq": self._store.load(namespace, asked.run_id).inbox_seq})
            return super().call(namespace, operation.model_copy(update={"end": end}))
        return super().call(namespace, operation)
