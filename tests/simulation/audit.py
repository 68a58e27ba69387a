"""Looks at every commit, and remembers what is stored."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence

from aiki_push.adapters.storage import formats
from aiki_push.adapters.storage.table import Put, Write
from aiki_push.domain.log_records import AnyRecord, LogSlot, TaskCompleted, TaskStarted, Transition
from aiki_push.domain.run import Run
from aiki_push.domain.values import Inline, Json
from tests.simulation.rules import Stored, faults_between, faults_of
from tests.simulation.segments import Executions
from tests.simulation.workflows import FAILED, SCENARIOS, plain, results_in


class Audit:
    """What is stored of every run, as far as `observe` was told; each fault goes to `report`."""

    def __init__(self, report: Callable[[str], None]) -> None:
        self.stored: dict[str, Stored] = {}
        self.executions: Executions
        self._report = report

    def observe(self, writes: Sequence[Write]) -> None:
        """These writes were committed, together."""
        models = [formats.read(write.item) for write in writes if isinstance(write, Put) and str(write.key.pk).startswith("RUN#")]
        run = next((model for model in models if isinstance(model, Run)), None)
        slots = tuple(model for model in models if isinstance(model, LogSlot))
        if run is None and not slots:
            return
        run_id = run.id if run else str(writes[0].key.pk).rpartition("#")[2]
        before = self.stored.get(run_id)
        after = _after(before, run, slots)
        self.stored[run_id] = after
        for fault in self._faults(before, after):
            self._report(f"run {run_id} (revision {after.run.revision}, {after.run.state}): {fault}")

    def _faults(self, before: Stored | None, after: Stored) -> Iterable[str]:
        yield from faults_of(after)
        if before is None:
            return
        yield from faults_between(before, after)
        claim_id = before.run.claim.claim_id if before.run.claim else ""
        for record in after.records[len(before.records) :]:
            if isinstance(record, TaskCompleted):
                yield from self._faults_of_result(claim_id, record)

    def _faults_of_result(self, claim_id: str, record: TaskCompleted) -> Iterable[str]:
        returned = self.executions.results.get((claim_id, record.task_id, record.attempt), set())
        if _value(record) not in returned:
            yield f"task {record.task_id} completed with a result that no execution of attempt {record.attempt} returned"

    def starts(self, run_id: str, claim_id: str, task_id: str, attempt: int) -> int:
        """How often the log allows this attempt to run under this claim."""
        return sum(
            record.task_id == task_id and record.attempt == attempt
            for slot in self.stored[run_id].slots
            if slot.claim_id == claim_id
            for record in slot.records
            if isinstance(record, TaskStarted)
        )

    def faults_of_endings(self) -> Iterable[str]:
        """What is wrong with how the runs ended, and with how many there are: a start that is repeated by reference is one run."""
        started = Counter(stored.run.reference for stored in self.stored.values())
        yield from (f"{count} runs have the reference {reference}" for reference, count in started.items() if count > 1)
        for run_id, stored in self.stored.items():
            scenario = SCENARIOS[stored.run.workflow]
            output = _output(stored.transitions[-1]) if stored.run.state.status == "completed" else FAILED
            if stored.run.state.status not in ("completed", "failed") or plain(output) not in scenario.endings:
                yield f"run {run_id} of {stored.run.workflow} ended as {stored.run.state} with output {plain(output)}"
            if made_up := results_in(output) - set(_results(stored.records)):
                yield f"run {run_id} of {stored.run.workflow} used results that are not recorded: {made_up}"


def _after(before: Stored | None, run: Run | None, slots: tuple[LogSlot, ...]) -> Stored:
    if before is None:
        assert run is not None
        return Stored(run, slots)
    return Stored(run or before.run, tuple(sorted((*before.slots, *slots), key=lambda slot: slot.position)))


def _value(record: TaskCompleted) -> Json:
    return record.output.value if isinstance(record.output, Inline) else None


def _output(transition: Transition) -> Json:
    return transition.output.value if isinstance(transition.output, Inline) else None


def _results(records: Iterable[AnyRecord]) -> Iterable[str]:
    return (str(_value(record)) for record in records if isinstance(record, TaskCompleted))
