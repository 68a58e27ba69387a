"""Looks at every commit, and remembers what is stored."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence

from aiki_push.adapters.storage.table import Write
from aiki_push.domain.log_records import Received, TaskCompleted, TaskStarted
from aiki_push.domain.values import Inline, Json, PayloadReference, RunId, StoredValue
from aiki_push.domain.waits import ANY_KEY
from tests.simulation.commit_rules import faults_in
from tests.simulation.commits import Commit, RunChange
from tests.simulation.segments import Executions
from tests.simulation.stored import Stored
from tests.simulation.traces import Traces


class Audit:
    """What is stored of every run, as far as `observe` was told; each fault goes to `report`."""

    def __init__(self, report: Callable[[str], None]) -> None:
        self.stored: dict[RunId, Stored] = {}
        self.traces = Traces(report)
        self.payloads: dict[tuple[RunId, str], Json] = {}
        self.operations = Counter[tuple[RunId, str]]()
        self.executions: Executions
        self._report = report

    def observe(self, writes: Sequence[Write]) -> None:
        """These writes were committed, together."""
        commit = Commit.of(writes, self.stored)
        self.stored |= {run_id: change.after for run_id, change in commit.changes.items()}
        self.payloads |= commit.payloads
        self.operations.update((run_id, one) for run_id, change in commit.changes.items() for one in change.new_operations)
        for run_id, fault in faults_in(commit, self.stored):
            self._report_of(run_id, fault)
        for run_id, change in commit.changes.items():
            for fault in (*self._faults_of_operations(run_id, change), *self._faults_of_results(run_id, change)):
                self._report_of(run_id, fault)
            self._follow(run_id, change)

    def _report_of(self, run_id: RunId, fault: str) -> None:
        run = self.stored[run_id].run
        self._report(f"run {run_id} of {run.workflow} (revision {run.revision}, {run.state}): {fault}")

    def _faults_of_operations(self, run_id: RunId, change: RunChange) -> Iterable[str]:
        for operation_id in change.new_operations:
            if self.operations[run_id, operation_id] > 1:
                yield f"operation {operation_id} is carried out again"

    def _faults_of_results(self, run_id: RunId, change: RunChange) -> Iterable[str]:
        claim = change.before.run.claim if change.before else None
        for record in change.records:
            if not isinstance(record, TaskCompleted):
                continue
            key = (claim.claim_id if claim else "", record.task_id, record.attempt)
            if self.content(run_id, record.output) not in self.executions.results.get(key, set()):
                yield f"task {record.task_id} completed with a result that no execution of attempt {record.attempt} returned"

    def _follow(self, run_id: RunId, change: RunChange) -> None:
        """Which traces last, and who must see them again."""
        before, after = change.before, change.after
        if before is None:
            return
        written = [slot.checkpoint_id for slot in after.slots[len(before.slots) :]]
        if after.run.last_write is not None and after.run.last_write != before.run.last_write:
            written.append(after.run.last_write.checkpoint_id)
        events = (record for record in change.records if isinstance(record, Received) and record.kind == "event")
        received = [str(self.content(run_id, after.messages[record.seq - 1].data)) for record in events]
        for checkpoint_id in dict.fromkeys(filter(None, written)):
            self.traces.committed(run_id, before.run.attempts, checkpoint_id, received)
        if after.run.claim is not None and before.run.claim is None:
            self.traces.claimed(run_id, after.run.attempts, after.run.claim.claim_id)

    def starts(self, run_id: str, claim_id: str, task_id: str, attempt: int) -> int:
        """How often the log allows this attempt to run under this claim."""
        return sum(
            record.task_id == task_id and record.attempt == attempt
            for slot in self.stored[RunId(run_id)].slots
            if slot.claim_id == claim_id
            for record in slot.records
            if isinstance(record, TaskStarted)
        )

    def was_woken(self, run_id: str, name: str, since: int) -> bool:
        """Whether somebody woke the run from the sleeps of this name at `since` or later."""
        messages = self.stored[RunId(run_id)].messages
        return any(one.kind == "wakeup" and one.key in (name, ANY_KEY) and one.at >= since for one in messages)

    def content(self, run_id: RunId, value: StoredValue | None) -> Json:
        """A value of the run, which keeps its large ones itself."""
        match value:
            case PayloadReference(run_id=owner) if owner != run_id:
                self._report_of(run_id, f"it depends on a value of run {owner}")
            case PayloadReference(sha256=digest):
                return self.payloads[run_id, digest]
            case Inline(value=content):
                return content
        return None
