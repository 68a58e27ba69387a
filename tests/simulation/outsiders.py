"""The world: people and programs that send events to the runs and control them, at any time, and once more when in doubt."""

import asyncio
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from random import Random
from typing import Any

from aiki_push.domain.errors import AikiError
from aiki_push.domain.run import MAX_OPERATIONS
from aiki_push.domain.values import RunId
from aiki_push.ports.api.controls import CancelRun, PauseRun, RequeueRun, ResumeRun, WakeUpRun
from aiki_push.ports.api.events import EventSent, SendEvent
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


@dataclass(frozen=True, slots=True)
class Habits:
    """How often the world does what, for each step; and what it leaves undone in the end: to resume runs, to send events."""

    rates: Mapping[str, float]
    leaves_paused: bool = False
    leaves_waiting: bool = False


def draw(random: Random) -> Habits:
    """Some of what the world can do, each at some strength."""
    share = random.random()
    most = {"event": 0.02, "wake": 0.02, "pause": 0.02, "resume": 0.02, "cancel": 0.005, "requeue": 0.005}
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
        """Perhaps somebody does something now."""
        random = self._schedule.random
        for name, rate in self.habits.rates.items():
            if self._audit.stored and random.random() < rate:
                run_id = random.choice(list(self._audit.stored))
                self._ask(self._operation(name, run_id))

    def may_operate(self, run_id: RunId) -> bool:
        """Whether one more operation on this run is not too many; it counts."""
        self._numbers[run_id] += 1
        return self._numbers[run_id] <= MOST_OPERATIONS

    def _operation(self, name: str, run_id: RunId) -> Operation[Any] | None:
        random = self._schedule.random
        operation_id = f"{name}-{self._schedule.steps}"
        if name == "event":
            event = random.choice(EVENTS)
            return SendEvent(run_id=run_id, event=event, data=f"{event}#{operation_id}", reference=operation_id)
        if not self.may_operate(run_id):
            return None
        match name:
            case "wake":
                return WakeUpRun(run_id=run_id, operation_id=operation_id, sleep=random.choice(SLEEPS))
            case "cancel":
                return CancelRun(run_id=run_id, operation_id=operation_id)
            case "pause":
                return PauseRun(run_id=run_id, operation_id=operation_id)
            case "resume":
                return ResumeRun(run_id=run_id, operation_id=operation_id)
            case _:
                return RequeueRun(run_id=run_id, operation_id=operation_id)

    def _ask(self, operation: Operation[Any] | None) -> None:
        if operation is not None:
            self._asked.append(self.process.spawn(self._insist(operation)))

    async def _insist(self, operation: Operation[Any]) -> None:
        random = self._schedule.random
        await asyncio.sleep(random.random() ** 3 * LONGEST_PATIENCE_S)
        is_wanted = True
        while is_wanted:
            try:
                self._check(operation, await self._api.call(operation))
            except AikiError as error:
                self._schedule.note(f"the world: {operation.operation} was answered {error!r}")
            is_wanted = random.random() < 0.4
            await asyncio.sleep(random.random() ** 2 * LONGEST_PATIENCE_S)

    def _check(self, operation: Any, answer: object) -> None:
        """What was accepted is stored."""
        if isinstance(answer, EventSent):
            run = self._audit.stored[operation.run_id]
            is_there = any(message.key == operation.event and operation.data in str(message.data) for message in run.messages)
            if is_there < answer.delivered or not (answer.delivered or run.has_ended):
                self._schedule.report(f"{operation} was answered {answer}; the run is {run.run.state}")
        elif not self._audit.operations[operation.run_id, operation.operation_id]:
            self._schedule.report(f"{operation} was accepted, and is not remembered")
