"""Servers with a fault, to see that it is found."""

from aiki_push.adapters.storage.store import SingleTableStore
from aiki_push.domain.changes import Change, PutSlot, SaveRun
from aiki_push.domain.log_records import Tail
from aiki_push.domain.run_states import Queued


class UnfencedStore(SingleTableStore):
    """Takes a run from its owner without taking its next slot: the records are kept in the header."""

    def commit(self, *changes: Change) -> None:
        """See Store."""
        match changes:
            case (SaveRun(run), PutSlot(slot=slot)) if run.state == Queued(reason="recovery"):
                tail = Tail(position=slot.position, records=slot.records)
                super().commit(SaveRun(run.model_copy(update={"tail": tail})))
            case _:
                super().commit(*changes)
