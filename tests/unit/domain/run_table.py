"""A table in memory that holds changes to their conditions."""

from aiki_push.domain.changes import Change, CreateRun, PutMessage, PutSlot, SaveRun
from aiki_push.domain.inbox import Message
from aiki_push.domain.log_records import AnyRecord, LogSlot
from aiki_push.domain.run import Run


class Refused(Exception):
    """A condition failed and nothing was written. `slot` is the one that stood in the way, if one did."""

    def __init__(self, slot: LogSlot | None = None) -> None:
        super().__init__("refused")
        self.slot = slot


class RunTable:
    """Headers, slots and messages of runs. Every write of a header gives it the next etag."""

    def __init__(self) -> None:
        self._headers: dict[tuple[str, str], Run] = {}
        self._slots: dict[tuple[str, str, int], LogSlot] = {}
        self._messages: dict[tuple[str, str, int], Message] = {}
        self._writes = 0

    def commit(self, *changes: Change) -> None:
        """Apply all of `changes` or none. Raises Refused."""
        for change in changes:
            self._check(change)
        for change in changes:
            self._apply(change)

    def run(self, namespace: str, run_id: str) -> Run:
        """The header as it was written last."""
        return self._headers[namespace, run_id]

    def slots(self, namespace: str, run_id: str) -> tuple[LogSlot, ...]:
        """The run's slots by position."""
        found = [slot for (space, owner, _), slot in self._slots.items() if (space, owner) == (namespace, run_id)]
        return tuple(sorted(found, key=lambda slot: slot.position))

    def log(self, namespace: str, run_id: str) -> tuple[AnyRecord, ...]:
        """The log as a replay reads it: all slots, then the tail unless it has become one of them."""
        tail = self.run(namespace, run_id).tail
        slots = self.slots(namespace, run_id)
        sealed = tuple(record for slot in slots for record in slot.records)
        return sealed if any(slot.position == tail.position for slot in slots) else (*sealed, *tail.records)

    def _check(self, change: Change) -> None:
        match change:
            case CreateRun(run=run):
                if (run.namespace, run.id) in self._headers:
                    raise Refused
            case SaveRun(run=run):
                stored = self._headers.get((run.namespace, run.id))
                if stored is None or stored.etag != run.etag:
                    raise Refused
            case PutSlot(namespace=namespace, run_id=run_id, slot=slot):
                taken = self._slots.get((namespace, run_id, slot.position))
                if taken is not None:
                    raise Refused(taken)
            case PutMessage(namespace=namespace, run_id=run_id, message=message):
                if (namespace, run_id, message.seq) in self._messages:
                    raise Refused
            case _:
                raise NotImplementedError(f"{type(change).__name__} is no change of a run")

    def _apply(self, change: Change) -> None:
        match change:
            case CreateRun(run=run) | SaveRun(run=run):
                self._writes += 1
                self._headers[run.namespace, run.id] = run.model_copy(update={"etag": f"e-{self._writes}"})
            case PutSlot(namespace=namespace, run_id=run_id, slot=slot):
                self._slots[namespace, run_id, slot.position] = slot
            case PutMessage(namespace=namespace, run_id=run_id, message=message):
                self._messages[namespace, run_id, message.seq] = message
            case _:
                raise NotImplementedError(f"{type(change).__name__} is no change of a run")
