"""Does the ledger agree with the histories of the runs?

Every completed task must have had its effect, and once. An execution that a crash cut off is repeated, so its effect may be there
twice; that is no fault, but it has to be said.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from aiki_push.domain.log_records import (
    AnyRecord,
    TaskBackingOff,
    TaskCancelled,
    TaskCompleted,
    TaskFailed,
    TaskStarted,
    Transition,
)
from examples.order_processing.ledger import Execution


@dataclass(frozen=True, slots=True)
class Audit:
    """What was found.

    effects: how many completed tasks have their effect in the ledger.
    interrupted: executions that a crash or a freeze cut off from their run. Those with an end had their effect all the same.
    faults: what must not be. None of them means that all is well.
    """

    effects: int
    interrupted: tuple[Execution, ...]
    faults: tuple[str, ...]


def audit(histories: Mapping[str, Sequence[AnyRecord]], executions: Iterable[Execution]) -> Audit:
    """Compare the histories of all runs, by their ids, with all executions in the ledger."""
    tries: dict[str, list[Execution]] = defaultdict(list)
    for execution in executions:
        tries[execution.idempotency_key].append(execution)
    effects, interrupted, faults = 0, list[Execution](), list[str]()
    for call in (call for run_id, records in histories.items() for call in _calls(run_id, records)):
        of_call = tries.pop(call.key, [])
        counted = call.counted(of_call)
        effects += counted is not None
        interrupted += [one for one in of_call if one is not counted and one.end != "failed"]
        faults += [f"{call.name} {call.key} {fault}" for fault in call.faults(of_call, counted)]
    faults += [f"{strangers[0].task} {key} was executed, and no history says so" for key, strangers in tries.items()]
    return Audit(effects, tuple(interrupted), tuple(faults))


@dataclass(slots=True)
class _Call:
    """One call of a task, from its run's history: `starts` by attempt, and `overlaps`, those that nothing made necessary."""

    name: str
    key: str
    starts: Counter[int] = field(default_factory=Counter[int])
    overlaps: int = 0
    is_open: bool = False
    completed: TaskCompleted | None = None

    def start(self, attempt: int) -> None:
        self.overlaps += self.is_open or self.completed is not None
        self.starts[attempt] += 1
        self.is_open = True

    def counted(self, tries: Sequence[Execution]) -> Execution | None:
        """The execution whose result the run went on with: the last one that began before this result was recorded."""
        if self.completed is None:
            return None
        attempt, recorded_at = self.completed.attempt, self.completed.at
        finished = [one for one in tries if one.end == "finished" and one.attempt == attempt]
        return max(finished, key=lambda one: (one.started_at <= recorded_at, one.id), default=None)

    def faults(self, tries: Sequence[Execution], counted: Execution | None) -> Iterator[str]:
        if self.completed is not None and counted is None:
            yield "completed, and its effect is not in the ledger"
        if self.overlaps:
            yield "was started again, and nothing had cut it off"
        for attempt, count in Counter(one.attempt for one in tries).items():
            if count > self.starts[attempt]:
                yield f"was executed {count} times in attempt {attempt}, which was started {self.starts[attempt]} times"


def _calls(run_id: str, records: Sequence[AnyRecord]) -> Iterable[_Call]:
    calls: dict[str, _Call] = {}
    for record in records:
        match record:
            case TaskStarted(task_id=task_id):
                calls.setdefault(task_id, _Call(record.name, f"{run_id}-{task_id}")).start(record.attempt)
            case TaskCompleted(task_id=task_id):
                calls[task_id].completed = record
            case TaskBackingOff(task_id=task_id) | TaskFailed(task_id=task_id) | TaskCancelled(task_id=task_id):
                calls[task_id].is_open = False
            case Transition() if record.state.status == "queued":
                for call in calls.values():
                    call.is_open = False
            case _:
                pass
    return calls.values()
