"""A run in a table in memory, its executors, and what must hold whenever something was written."""

from collections.abc import Sequence
from dataclasses import dataclass

import pytest

from aiki_push.domain.changes import Change, PutSlot
from aiki_push.domain.checkpoints import Checkpoint, append
from aiki_push.domain.claims import Owner
from aiki_push.domain.log_records import AnyRecord, LogSlot, Transition
from aiki_push.domain.run import Run
from aiki_push.domain.run_states import TERMINAL, Status
from aiki_push.domain.values import TimestampMs
from tests.unit.domain.run_examples import NAMESPACE, RUN_ID, later, note
from tests.unit.domain.run_table import Refused, RunTable

STOPPED: dict[str, Status] = {"pause": "paused", "cancel": "cancelled"}


@dataclass
class Executor:
    """What an executor knows: its claim, the tail it was given, and where its next write goes."""

    owner: Owner
    tail: tuple[AnyRecord, ...]
    position: int
    is_first: bool = True
    unanswered: Checkpoint | None = None
    is_unaware: bool = False
    """The run was taken away while it was silent."""

    def checkpoint(self, checkpoint_id: str, records: Sequence[AnyRecord]) -> Checkpoint:
        return Checkpoint(self.owner, checkpoint_id, self.position, self.is_first, tuple(records))

    def put(self, checkpoint: Checkpoint, now: TimestampMs) -> PutSlot:
        return append(NAMESPACE, RUN_ID, checkpoint, self.tail if checkpoint.is_first else (), now)

    def go_on(self) -> None:
        """The append at `position` is known to be in the log."""
        self.position, self.is_first, self.unanswered = self.position + 1, False, None


class RunHistory:
    """One run, its executors dead and alive, and their appends that arrive late, twice or never."""

    def __init__(self) -> None:
        self.table = RunTable()
        self.now = later(0)
        self.names = 0
        self.executors: list[Executor] = []
        self.wire: list[PutSlot] = []
        self.fruitless = 0
        """Recoveries and yields in a row without progress of the log."""

    @property
    def run(self) -> Run:
        return self.table.run(NAMESPACE, RUN_ID)

    @property
    def log(self) -> tuple[AnyRecord, ...]:
        return self.table.log(NAMESPACE, RUN_ID)

    @property
    def slots(self) -> tuple[LogSlot, ...]:
        return self.table.slots(NAMESPACE, RUN_ID)

    @property
    def last(self) -> LogSlot | None:
        return self.slots[-1] if self.slots else None

    @property
    def owner(self) -> Executor | None:
        """Who holds the claim."""
        return next((one for one in self.executors if self.run.claim and one.owner.claim_id == self.run.claim.claim_id), None)

    def is_idle(self) -> bool:
        """Whether the owner may do anything it likes."""
        return self.owner is not None and self.owner.unanswered is None

    def is_in(self, *statuses: Status) -> bool:
        return self.run.state.status in statuses

    def name(self) -> str:
        self.names += 1
        return f"n-{self.names}"

    def notes(self, size: int) -> tuple[AnyRecord, ...]:
        """Nothing, or a record unlike every other."""
        return (note(self.name() + "é" * size, self.now),) if size else ()

    def has_landed(self, checkpoint: Checkpoint) -> bool:
        return any(slot.checkpoint_id == checkpoint.checkpoint_id for slot in self.slots)

    def obeying(self, status: Status) -> Status:
        """Where a run goes that its owner lets go of: to `status`, unless something else was directed."""
        return STOPPED[self.run.directive.action] if self.run.directive else status

    def ending_in(self, status: Status) -> tuple[Status, ...]:
        """Where a run goes whose owner leaves it in `status`: there, and then where it was directed to go, if it can."""
        allowed = () if status in TERMINAL else ("cancelled",) if status == "stalled" else ("cancelled", "paused")
        stopped = STOPPED[self.run.directive.action] if self.run.directive else status
        return (status, stopped) if stopped in allowed else (status,)

    def has_written(self, executor: Executor) -> bool:
        """Whether an append of this claim is in the log."""
        return any(slot.claim_id == executor.owner.claim_id for slot in self.slots)

    def write(self, changes: Sequence[Change], *records: AnyRecord, enters: Status | tuple[Status, ...] = ()) -> None:
        """Commit `changes`: the log grows by `records`, and by a transition for each state it enters; nothing else moves."""
        log, run = self.log, self.run
        self.table.commit(*changes)
        self.now = TimestampMs(self.now + 1)

        grown = self.log
        assert grown[: len(log) + len(records)] == (*log, *records)
        added = grown[len(log) + len(records) :]
        origin, revision, state = run.state.status, run.revision, run.state
        for record, entered in zip(added, (enters,) if isinstance(enters, str) else enters, strict=True):
            assert isinstance(record, Transition)
            assert (record.origin, record.state.status, record.revision) == (origin, entered, revision + 1)
            origin, revision, state = entered, record.revision, record.state
        assert (self.run.revision, self.run.state) == (revision, state)

    def refuse(self, changes: Sequence[Change]) -> LogSlot | None:
        """Try to commit `changes`; nothing is written. The slot that stood in the way comes back."""
        log, run = self.log, self.run
        with pytest.raises(Refused) as refused:
            self.table.commit(*changes)
        assert (self.log, self.run) == (log, run)
        return refused.value.slot
