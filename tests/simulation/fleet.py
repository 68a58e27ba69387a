"""The executors: processes that take pushes, die, freeze and are replaced."""

import asyncio
from contextvars import copy_context
from random import Random

from aiki_push.domain.errors import ApiError, ServerUnreachable
from aiki_push.ports.publisher import ReadyRun
from aiki_push.sdk.client import Client
from aiki_push.sdk.executor import Executor, ExecutorConfig
from aiki_push.sdk.registry import Registry
from aiki_push.sdk.replay.claim_keeper import ClaimKeeper
from tests.simulation.faults import SECOND_US, Misfortune
from tests.simulation.network import Network, NetworkApi
from tests.simulation.process import Process, start_process
from tests.simulation.schedule import Schedule, SeededEntropy, VirtualClock
from tests.simulation.segments import Executions, SegmentFacts, enter_segment
from tests.simulation.workflows import SCENARIOS

LONGEST_SKEW_MS = 3_600_000
LONGEST_START_US = 60 * SECOND_US


class TaskKeeper(ClaimKeeper):
    """Refreshes in a task of the running event loop, and so in its time."""

    def start(self) -> None:
        """See ClaimKeeper."""
        self._task = asyncio.get_running_loop().create_task(self._keep())

    def stop(self) -> None:
        """See ClaimKeeper."""
        super().stop()
        self._task.cancel()

    async def _keep(self) -> None:
        api = self.connect()
        await asyncio.sleep(self.interval_s)
        while await self.refresh(api):
            await asyncio.sleep(self.interval_s)


def client_of(process: Process, schedule: Schedule, network: Network) -> Client:
    """A client in `process`, whose wall clock is wrong."""
    clock = VirtualClock(schedule, skew_ms=schedule.random.randint(-LONGEST_SKEW_MS, LONGEST_SKEW_MS))
    return Client(lambda: NetworkApi(network, process), clock=clock, entropy=SeededEntropy(schedule.random))


class Fleet:
    """A number of executors. One that dies is replaced after a while."""

    def __init__(self, size: int, schedule: Schedule, misfortune: Misfortune, network: Network, config: ExecutorConfig) -> None:
        self._schedule = schedule
        self._misfortune = misfortune
        self._network = network
        self._config = config
        self._dead: list[Process] = []
        self._alive: dict[Process, Executor] = {}
        self.executions: Executions
        for number in range(size):
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
        try:
            result = await self._alive[process].execute(ready.run_id, revision=self._random.choice([ready.revision, None]))
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
        self._alive[process] = Executor(client, registry, config=self._config, name=process.name, keeper=TaskKeeper)
        self._network.connect(process)
