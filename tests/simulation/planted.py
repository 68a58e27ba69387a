"""Servers with a fault, to see that it is found: each is a store that makes something else of what a decision asks for."""

from typing import TypeVar

from aiki_push.adapters.storage.store import SingleTableStore
from aiki_push.adapters.storage.table import Table
from aiki_push.domain.changes import (
    Change,
    CreateRun,
    DeleteWatcher,
    PutEventReference,
    PutMessage,
    PutSlot,
    PutWatcher,
    SaveRun,
)
from aiki_push.domain.log_records import AnyRecord, LogSlot, Received, Tail
from aiki_push.domain.run import Duty, Run
from aiki_push.domain.run_states import PARKED, TERMINAL, Queued, QueuedReason, Running
from aiki_push.domain.run_transitions import keep_in_tail, queue
from aiki_push.domain.waits import earliest_deadline
from aiki_push.ports.api.checkpoints import AppendCheckpoint, Park
from aiki_push.ports.api.operation import Operation
from aiki_push.ports.clock import Clock
from aiki_push.ports.entropy import Entropy
from aiki_push.ports.store import RunContents
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


class TwiceTellingStore(SpoilingStore):
    """Who is told of a run's end stays on the list."""

    def spoiled_one(self, change: Change, changes: tuple[Change, ...]) -> Change | None:
        """See SpoilingStore."""
        return None if isinstance(change, DeleteWatcher) and len(changes) > 1 else change


class UntoldStore(SpoilingStore):
    """Who is to be told of a run's end is taken off the list, and not told."""

    def spoiled(self, changes: tuple[Change, ...]) -> tuple[Change, ...]:
        """See SpoilingStore."""
        return tuple(change for change in changes if isinstance(change, DeleteWatcher)) or changes


class UnlinkedStore(SpoilingStore):
    """Who is linked to a run that has ended is not told."""

    def spoiled(self, changes: tuple[Change, ...]) -> tuple[Change, ...]:
        """See SpoilingStore."""
        is_link = any(isinstance(change, PutMessage) and change.message.kind == "child" for change in changes)
        slots = tuple(change for change in changes if isinstance(change, PutSlot))
        return slots if is_link and slots and len(changes) == len(slots) + 2 else changes


class UnwatchedStore(SpoilingStore):
    """A run that ends forgets who is to be told, or what it has started."""

    forgotten: Duty = "tell_watchers"

    def spoiled_run(self, run: Run) -> SaveRun | None:
        """See SpoilingStore."""
        duties = tuple(duty for duty in run.duties if duty != self.forgotten)
        return SaveRun(run.model_copy(update={"duties": duties, "due_at": run.due_at if duties == run.duties else None}))


class ChildlessStore(UnwatchedStore):
    """A run that is cancelled leaves its children alone."""

    forgotten = "cancel_children"


class RestlessEndStore(SpoilingStore):
    """What was done for a run that has ended is never taken off its list."""

    def spoiled_run(self, run: Run) -> SaveRun | None:
        """See SpoilingStore."""
        return None if run.state.status in TERMINAL and run.revision and not run.duties and run.watched else SaveRun(run)


class ForgetfulStore(SpoilingStore):
    """The reference of an event is not remembered, so that it may come again."""

    def spoiled_one(self, change: Change, changes: tuple[Change, ...]) -> Change | None:  # noqa: ARG002 - see SpoilingStore
        """See SpoilingStore."""
        return None if isinstance(change, PutEventReference) else change


class LosingStore(SpoilingStore):
    """A message is accepted, and not kept."""

    kind = "event"

    def spoiled(self, changes: tuple[Change, ...]) -> tuple[Change, ...]:
        """See SpoilingStore."""
        match changes:
            case (SaveRun(run), PutMessage(message=message), *others) if message.kind == self.kind:
                return (SaveRun(run.model_copy(update={"inbox_seq": run.inbox_seq - 1})), *others)
            case _:
                return changes


class WakelessStore(LosingStore):
    """An early wake is accepted, and not kept."""

    kind = "wakeup"


class EndlessWindowStore(SpoilingStore):
    """The time in which ends of children are gathered never ends."""

    def spoiled_run(self, run: Run) -> SaveRun | None:
        """See SpoilingStore."""
        is_parked = run.state.status in PARKED
        return SaveRun(run.model_copy(update={"due_at": earliest_deadline(run.waits)})) if is_parked else SaveRun(run)


class EarlyBirthStore(SpoilingStore):
    """Children are created before their parent writes that they are."""

    def commit(self, *changes: Change) -> None:
        """See Store."""
        births = tuple(one for one in changes if isinstance(one, PutWatcher) or (isinstance(one, CreateRun) and one.run.parent))
        is_birth = any(isinstance(one, CreateRun) for one in births)
        for part in (births, tuple(one for one in changes if one not in births)) if is_birth else (changes,):
            super().commit(*part)


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


class UnreceivedStore(SpoilingStore):
    """Whoever claims a run does not see which messages it has received."""

    def load_contents(self, namespace: str, run_id: str, *, max_bytes: int) -> RunContents:
        """See Store."""
        found = super().load_contents(namespace, run_id, max_bytes=max_bytes)
        slots = tuple(slot.model_copy(update={"records": _without_received(slot.records)}) for slot in found.slots)
        tail = found.run.tail.model_copy(update={"records": _without_received(found.run.tail.records)})
        return RunContents(found.run.model_copy(update={"tail": tail}), slots, found.messages, found.is_complete)


def _without_received(records: tuple[AnyRecord, ...]) -> tuple[AnyRecord, ...]:
    return tuple(record for record in records if not isinstance(record, Received))


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


class BlindStore(SpoilingStore):
    """Whoever claims a run does not see the messages that it has not received yet."""

    def load_contents(self, namespace: str, run_id: str, *, max_bytes: int) -> RunContents:
        """See Store."""
        found = super().load_contents(namespace, run_id, max_bytes=max_bytes)
        records = (*(record for slot in found.slots for record in slot.records), *found.run.tail.records)
        last = max((record.seq for record in records if isinstance(record, Received)), default=0)
        run = found.run.model_copy(update={"inbox_seq": last})
        return RunContents(run, found.slots, found.messages[:last], found.is_complete)


class MixedUpStore(SpoilingStore):
    """An event is read with the data of another one."""

    def load_contents(self, namespace: str, run_id: str, *, max_bytes: int) -> RunContents:
        """See Store."""
        found = super().load_contents(namespace, run_id, max_bytes=max_bytes)
        data = [message.data for message in found.messages if message.kind == "event"][::-1]
        messages = (
            message.model_copy(update={"data": data.pop()}) if message.kind == "event" else message
            for message in reversed(found.messages)
        )
        return RunContents(found.run, found.slots, tuple(messages)[::-1], found.is_complete)
