"""The executors: processes that take pushes, die, freeze and are replaced."""

import asyncio
from contextvars import copy_context
from math import inf
from random import Random
from typing import TypeVar

from aiki_push.domain.errors import ApiError, ServerUnreachable
from aiki_push.ports.api.claims import Inbox
from aiki_push.ports.api.operation import Api, Operation
from aiki_push.ports.publisher import ReadyRun
from aiki_push.sdk.client import Client
from aiki_push.sdk.executor import Executor, ExecutorConfig
from aiki_push.sdk.registry import Registry
from aiki_push.sdk.replay.claim_keeper import ClaimKeeper
from tests.simulation.faults import SECOND_US, Misfortune
from tests.simulation.network import Network, NetworkApi
from tests.simulation.process import Process, start_process
from tests.simulation.schedule import Schedule, SeededEntropy, VirtualClock
from tests.simulation.segments import Executions, SegmentFacts, current_segment, enter_segment
from tests.simulation.workflows import SCENARIOS

R = TypeVar("R")

LONGEST_SKEW_MS = 3_600_000
LONGEST_START_US = 60 * SECOND_US

NEWS_INTERVALS_S = (1.0, 5.0, 60.0)
INVOCATIONS_MS = (inf, inf, 60_000.0, 15_000.0)


class TaskKeeper(ClaimKeeper):
    """Refreshes, and asks for news, in a task of the running event loop, and so in its time."""

    news_interval_s: float

    def start(self) -> None:
        """See ClaimKeeper."""
        self._task = asyncio.get_running_loop().create_task(self._keep())

    def stop(self) -> None:
        """See ClaimKeeper."""
        super().stop()
        self._task.cancel()

    async def _keep(self) -> None:
        api, time = self.connect(), asyncio.get_running_loop().time
        refreshed_at, is_held = time(), True
        while is_held:
            await asyncio.sleep(min(self.interval_s, self.news_interval_s))
            if time() - refreshed_at >= self.interval_s:
                refreshed_at = time()
                is_held = await self.refresh(api)
            else:
                is_held = await self.ask(api)

    async def ask(self, api: Api) -> bool:
        """See ClaimKeeper."""
        return await super().ask(Overheard(api))


class Overheard:
    """An Api whose answers of news are noted."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self.close = api.close

    async def call(self, operation: Operation[R]) -> R:
        """See Api."""
        answer = await self._api.call(operation)
        if isinstance(answer, Inbox) and (segment := current_segment()):
            segment.told_news(answer)
        return answer


def keeper(news_interval_s: float) -> type[TaskKeeper]:
    """A TaskKeeper that asks for news so often."""
    return type("Keeper", (TaskKeeper,), {"news_interval_s": news_interval_s})


def client_of(process: Process, schedule: Schedule, network: Network) -> Client:
    """A client in `process`, whose wall clock is wrong."""
    clock = VirtualClock(schedule, skew_ms=schedule.random.randint(-LONGEST_SKEW_MS, LONGEST_SKEW_MS))
    return Client(lambda: NetworkApi(network, process), clock=clock, entropy=SeededEntropy(schedule.random))


class Fleet:
    """A number of executors, all of one kind. One that dies is replaced after a while."""

    def __init__(self, schedule: Schedule, misfortune: Misfortune, network: Network) -> None:
        self._schedule = schedule
        self._misfortune = misfortune
        self._network = network
        self._config = ExecutorConfig(
            claim_refresh_interval_ms=self._random.choice([1_000, 30_000]),
            max_inline_wait_ms=self._random.choice([0, 10, 2_000]),
            max_interruptions=1_000_000,
        )
        self._keeper = keeper(self._random.choice(NEWS_INTERVALS_S))
        self._invocation_ms = self._random.choice(INVOCATIONS_MS)
        self._dead: list[Process] = []
        self._alive: dict[Process, Executor] = {}
        self.executions: Executions
        for number in range(self._random.randint(1, 3)):
            self._start_one(ignorance=0.2 if number else 0)

    @property
    def _random(self) -> Random:
        return self._schedule.random

    def deliver(self, ready: ReadyRun) -> None:
        """Push a run to one of the executors; nobody hears of it where none is alive."""
        if not self._alive:
            return
        process = self._random.choice(list(self._alive))
        context = copy_context()
        context.run(enter_segment, SegmentFacts(process, ready.run_id, self.executions))
        process.spawn(self._execute(process, ready), context)

    async def _execute(self, process: Process, ready: ReadyRun) -> None:
        revision = self._random.choice([ready.revision, None])
        try:
            result = await self._alive[process].execute(ready.run_id, revision=revision, left_ms=self._invocation_ms)
        except (ApiError, ServerUnreachable) as error:
            self._schedule.note(f"{process.name}: run {ready.run_id} could not be claimed: {error!r}")
        else:
            self._schedule.note(f"{process.name}: segment of run {ready.run_id} ends as {result.outcome}")

    def suffer(self) -> None:
        """Perhaps one of them dies or freezes now."""
        if self._alive and self._misfortune.strikes(self._misfortune.faults.kill):
            process = self._random.choice(list(self._alive))
            self._schedule.note(f"{process.name} dies")
            process.kill()
            del self._alive[process]
            self._dead.append(process)
            self._schedule.later(self._random.randrange(LONGEST_START_US), "an executor is replaced", self._start_one)
        if self._alive and self._misfortune.strikes(self._misfortune.faults.freeze):
            process = self._random.choice(list(self._alive))
            self._schedule.note(f"{process.name} freezes")
            process.freeze(self._misfortune.pause_us())

    def thaw(self) -> None:
        """Have all that is frozen go on."""
        for process in self._alive:
            process.thaw()

    def bury(self) -> None:
        """End everything."""
        for process in (*self._alive, *self._dead):
            process.kill()
            process.bury()

    def _start_one(self, ignorance: float = 0) -> None:
        """Start an executor; `ignorance` is the probability that it does not know a workflow."""
        name = f"executor {len(self._alive) + len(self._dead) + 1}"
        process = start_process(name, self._schedule)
        known = [scenario.version for scenario in SCENARIOS.values() if self._random.random() >= ignorance]
        registry = Registry(known)
        client = client_of(process, self._schedule, self._network)
        self._alive[process] = Executor(client, registry, config=self._config, name=process.name, keeper=self._keeper)
        self._network.connect(process)
