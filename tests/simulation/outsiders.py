"""The world: people and programs that send events to the runs and control them, at any time, and once more when in doubt."""

import asyncio
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from random import Random
from typing import Any

from aiki_push.domain.errors import AikiError
from aiki_push.domain.run import MAX_OPERATIONS, Run
from aiki_push.domain.run_states import TERMINAL
from aiki_push.domain.values import RunId
from aiki_push.ports.api.controls import CancelRun, PauseRun, RequeueRun, ResumeRun, WakeUpRun
from aiki_push.ports.api.events import EventSent, EventsSent, MulticastEvent, RunWithId, SendEvent
from aiki_push.ports.api.operation import Operation
from tests.simulation.audit import Audit
from tests.simulation.network import Network, NetworkApi
from tests.simulation.process import start_process
from tests.simulation.schedule import Schedule

MOST_OPERATIONS = MAX_OPERATIONS // 2
"""On one run, so that none is forgotten: other runs have theirs."""

LONGEST_PATIENCE_S = 150.0
"""Before an operation is asked for, or asked for once more: time in which runs that sleep would come to nothing otherwise."""

EVENTS = ("bell", "gong")
SLEEPS = (None, "nap", "night")

_CONTROLS: Mapping[str, type[Operation[Any]]] = {
    "pause": PauseRun,
    "resume": ResumeRun,
    "cancel": CancelRun,
    "requeue": RequeueRun,
}


@dataclass(frozen=True, slots=True)
class Habits:
    """How often the world does what, for each step; and what it leaves undone in the end: to resume runs, to send events."""

    rates: Mapping[str, float]
    leaves_paused: bool = False
    leaves_waiting: bool = False


def draw(random: Random) -> Habits:
    """Some of what the world can do, each at some strength."""
    share = random.random()
    most = {"event": 0.02, "wake": 0.03, "pause": 0.03, "resume": 0.03, "cancel": 0.005, "requeue": 0.005}
    rates = {name: rate * random.random() ** 3 for name, rate in most.items() if random.random() < share}
    return Habits(rates, leaves_paused=random.random() < 0.15, leaves_waiting=random.random() < 0.15)


class Outsiders:
    """A process that does all this."""

    def __init__(self, schedule: Schedule, network: Network, audit: Audit, habits: Habits) -> None:
        self.process = start_process("the world", schedule)
        self.habits = habits
        self._schedule = schedule
        self._audit = audit
        self._api = NetworkApi(network, self.process)
        self._asked: list[asyncio.Task[None]] = []
        self._numbers = Counter[RunId]()

    @property
    def are_done(self) -> bool:
        """Whether nobody waits for an answer or means to ask once more."""
        return all(one.done() for one in self._asked)

    def meddle(self) -> None:
        """Perhaps somebody means to do something now, or in a while."""
        for name, rate in self.habits.rates.items():
            if self._schedule.random.random() < rate:
                self._asked.append(self.process.spawn(self._act(name)))

    def ask(self, operation: Operation[Any]) -> None:
        """Have somebody ask for this, unless it is one operation too many."""
        if isinstance(operation, SendEvent) or self.may_operate(getattr(operation, "run_id", RunId(""))):
            self._asked.append(self.process.spawn(self._insist(operation)))

    def may_operate(self, run_id: RunId) -> bool:
        """Whether one more operation on this run is not too many; it counts."""
        self._numbers[run_id] += 1
        return self._numbers[run_id] <= MOST_OPERATIONS

    async def _act(self, name: str) -> None:
        random = self._schedule.random
        await asyncio.sleep(random.random() ** 6 * LONGEST_PATIENCE_S)
        sensible = [run_id for run_id, one in self._audit.stored.items() if _is_sensible(name, one.run)]
        chosen = sensible if random.random() < 0.8 else list(self._audit.stored)
        if chosen and (operation := self._operation(name, random.choice(chosen))):
            await self._insist(operation)

    def _operation(self, name: str, run_id: RunId) -> Operation[Any] | None:
        random = self._schedule.random
        operation_id = f"{name}-{self._schedule.steps}"
        if name == "event":
            event = random.choice(EVENTS)
            sent = {"event": event, "data": f"{event}#{operation_id}", "reference": operation_id}
            if random.random() < 0.7:
                return SendEvent.model_validate({"run_id": run_id, **sent})
            other = random.choice(list(self._audit.stored))
            targets = [RunWithId(run_id=run_id).model_dump(), RunWithId(run_id=other).model_dump()]
            return MulticastEvent.model_validate({"targets": targets, **sent})
        if not self.may_operate(run_id):
            return None
        if name == "wake":
            return WakeUpRun(run_id=run_id, operation_id=operation_id, sleep=random.choice(SLEEPS))
        return _CONTROLS[name].model_validate({"run_id": run_id, "operation_id": operation_id})

    async def _insist(self, operation: Operation[Any]) -> None:
        random = self._schedule.random
        is_wanted = True
        while is_wanted:
            try:
                self._check(operation, await self._api.call(operation))
            except AikiError as error:
                self._schedule.note(f"the world: {operation.operation} was answered {error!r}")
            is_wanted = random.random() < 0.6
            await asyncio.sleep(random.random() ** 2 * LONGEST_PATIENCE_S)

    def _check(self, operation: Any, answer: object) -> None:
        """What was accepted is stored."""
        if isinstance(answer, EventSent):
            self._check_sent(operation, operation.run_id, answer.delivered)
        elif isinstance(answer, EventsSent):
            for target, outcome in zip(operation.targets, answer.outcomes, strict=True):
                self._check_sent(operation, target.run_id, outcome.delivered)
        elif not self._audit.operations[operation.run_id, operation.operation_id]:
            self._schedule.report(f"{operation} was accepted, and is not remembered")

    def _check_sent(self, operation: SendEvent | MulticastEvent, run_id: RunId, is_delivered: bool) -> None:
        run = self._audit.stored[run_id]
        is_there = any(message.key == operation.event and str(operation.data) in str(message.data) for message in run.messages)
        if is_there < is_delivered or not (is_delivered or run.has_ended):
            self._schedule.report(f"{operation} was delivered: {is_delivered}; run {run_id} is {run.run.state}")


def _is_sensible(name: str, run: Run) -> bool:
    """Whether the operation means something to the run as it is."""
    status = run.state.status
    match name:
        case "wake":
            return any(wait.kind == "sleep" for wait in run.waits)
        case "resume":
            return status == "paused"
        case "requeue":
            return status == "stalled"
        case _:
            return status not in TERMINAL and not (name == "pause" and status == "paused")
