"""Servers with a fault in what runs are told, and what follows their ends, to see that it is found."""

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
from aiki_push.domain.log_records import AnyRecord, Received
from aiki_push.domain.run import Duty, Run
from aiki_push.domain.run_states import PARKED, TERMINAL
from aiki_push.domain.waits import earliest_deadline
from aiki_push.ports.store import RunContents
from tests.simulation.planted import SpoilingStore


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
