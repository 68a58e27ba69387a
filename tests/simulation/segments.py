"""What an executor knows of the segment that it executes, and every execution of a task's handler."""

from collections import Counter
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import datetime
from random import Random
from typing import Any, Protocol, TypeVar

from aiki_push import Run, TaskInfo
from aiki_push.domain.log_records import TaskStarted
from aiki_push.ports.api.checkpoints import AppendCheckpoint
from aiki_push.ports.api.claims import Claimed, ClaimRun, Inbox
from aiki_push.ports.api.operation import Operation
from tests.simulation.process import Process
from tests.simulation.schedule import Schedule
from tests.simulation.traces import Traces

T = TypeVar("T")

PACES_S = (0.1, 3.0, 40.0)
"""How long handlers take at most, in one simulation."""

OVERLONG_WORK_S = 120.0
"""Longer than a claim lives without being refreshed."""

LONG_RESULTS = (0, 0, 0, 0, 2_500, 2_500, 40_000)
"""Characters, at most: above what a header's tail takes, so that some transitions need a slot of their own; above what a slot does."""


class Records(Protocol):
    """What the executions are compared with."""

    def starts(self, run_id: str, claim_id: str, task_id: str, attempt: int) -> int:
        """How often the log allows this attempt to run under this claim."""
        ...

    def was_woken(self, run_id: str, name: str, since: int) -> bool:
        """Whether somebody woke the run from the sleeps of this name at `since` or later."""
        ...


@dataclass(eq=False, slots=True)
class SegmentFacts:
    """One call of `Executor.execute`, from outside."""

    process: Process
    run_id: str
    executions: "Executions"
    claim_id: str = ""
    revision: int = 0
    knows_that_it_lost: bool = False
    knows_that_it_must_stop: bool = False

    def sends(self, operation: Operation[Any]) -> None:
        """The executor asks the server for something."""
        if not isinstance(operation, AppendCheckpoint):
            return
        is_new = self.executions.traces.sends(self.claim_id, operation.checkpoint_id)
        starts_task = any(isinstance(record, TaskStarted) for record in operation.records)
        if is_new and starts_task and self.knows_that_it_must_stop:
            self.executions.schedule.report(
                f"{self.process.name} starts a task of run {self.run_id}, which it was directed to stop"
            )

    def heard(self, operation: Operation[Any], answer: object) -> None:
        """The server answered."""
        if isinstance(operation, ClaimRun) and isinstance(answer, Claimed):
            self.claim_id, self.revision = operation.claim_id, answer.run.revision
        elif isinstance(answer, Inbox) and answer.revision != self.revision:
            self.told_lost()

    def told_lost(self) -> None:
        """The server says that the run moved on. Once the process has dealt with that, it must know."""
        self.process.when_idle(self._know)

    def told_news(self, news: Inbox) -> None:
        """The claim keeper has news for the executor."""
        if news.directive is not None:
            self.process.when_idle(self._must_stop)

    def _know(self) -> None:
        self.knows_that_it_lost = True

    def _must_stop(self) -> None:
        self.knows_that_it_must_stop = True


_segment: ContextVar[SegmentFacts] = ContextVar("the simulation's segment")


def enter_segment(facts: SegmentFacts) -> None:
    """Have whatever runs in this context belong to `facts`."""
    _segment.set(facts)


def current_segment() -> SegmentFacts | None:
    """The segment whose context this is, if any."""
    return _segment.get(None)


def saw(run: Run, what: T) -> T:
    """`what`, which the workflow that calls this was given now: every replay must be given the same, at the same time."""
    if (segment := current_segment()) is not None:
        segment.executions.traces.saw(segment.claim_id, f"{what!s:.60} at {run.now():%H:%M:%S.%f}")
    return what


def check(is_right: bool, what: str) -> None:
    """Something that the workflow that calls this can tell by itself."""
    if not is_right and (segment := current_segment()) is not None:
        segment.executions.schedule.report(f"the workflow of run {segment.run_id} finds that {what}")


def wakes_since(run: Run, name: str, since: datetime) -> bool:
    """Whether an early wake of this sleep lies in the run's inbox that is not older than `since`."""
    segment = current_segment()
    return segment is None or segment.executions.records.was_woken(run.id, name, int(since.timestamp() * 1_000))


@dataclass(slots=True)
class Executions:
    """Every execution of a handler, checked when it begins."""

    schedule: Schedule
    records: Records
    traces: Traces
    random: Random
    pace_s: float
    begun: Counter[tuple[str, str, str, int]] = field(default_factory=Counter)
    results: dict[tuple[str, str, int], set[str]] = field(default_factory=dict)
    """What executions returned, by claim, task and attempt."""

    def begin(self, info: TaskInfo) -> float:
        """An execution begins. How long it takes, in seconds."""
        segment = self._segment()
        key = (info.run_id, segment.claim_id, info.task_id, info.attempt)
        self.begun[key] += 1
        what = f"{segment.process.name} executes {info.task} {info.task_id} of run {info.run_id} under claim {segment.claim_id}"
        self.schedule.note(what)
        if segment.knows_that_it_lost:
            self.schedule.report(f"{what}, which it knows to have lost")
        if self.begun[key] > self.records.starts(*key):
            self.schedule.report(f"{what} for the {self.begun[key]}. time in attempt {info.attempt}; the log allows less")
        return self.random.random() * (OVERLONG_WORK_S if self.random.random() < 0.03 else self.pace_s)

    def end(self, info: TaskInfo, what: str) -> str:
        """An execution ends. Its result, which is like no other's."""
        key = (self._segment().claim_id, info.task_id, info.attempt)
        nonce = sum(map(len, self.results.values()))
        padding = "." * int(self.random.random() * self.random.choice(LONG_RESULTS))
        result = f"{what}#{nonce}{padding}"
        self.results.setdefault(key, set()).add(result)
        return result

    def _segment(self) -> SegmentFacts:
        return _segment.get()
