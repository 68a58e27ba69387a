"""The system in one process, on the memory store: the framework alone."""

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace

from aiki_push.adapters.system import SystemClock
from aiki_push.adapters.wakeups.memory import MemoryWakeups
from aiki_push.domain.values import TimestampMs
from aiki_push.ports.publisher import Outcome, Published, ReadyRun
from aiki_push.sdk.executor import Executor
from aiki_push.server.attention.advance import Attention
from aiki_push.server.service import Server
from aiki_push.testing.local_system import NAMESPACE, LocalSystem
from bench.workflows import ALL

HOUR_MS = 3_600_000
HINT_THREADS = 8
"""As the development server has them."""


class ShiftedClock(SystemClock):
    """The machine's clock, a while ahead: hours of waiting pass at once."""

    def __init__(self) -> None:
        self.ahead_ms = 0

    def now(self) -> TimestampMs:
        """The machine's time and what it is ahead."""
        return TimestampMs(super().now() + self.ahead_ms)


class EmbeddedSystem(LocalSystem):
    """A server in memory and executors that call it in process, in a world where hours can pass at once."""

    def __init__(self) -> None:
        self.shifted_clock = ShiftedClock()
        super().__init__(clock=self.shifted_clock)

    def wake(self, run_id: str) -> None:
        """Let an hour pass, and give the run what it needs then."""
        self.shifted_clock.ahead_ms += HOUR_MS + 100_000
        self.attention.advance(NAMESPACE, run_id)


class LivePublisher:
    """A Publisher that has each run executed on the event loop, and waits for that as a push waits for its answer."""

    def __init__(self, executor: Executor) -> None:
        self._executor = executor
        self._loop = asyncio.get_running_loop()
        self._outcomes: defaultdict[str, asyncio.Queue[str]] = defaultdict(asyncio.Queue)

    def publish(self, runs: Sequence[ReadyRun]) -> Sequence[Outcome]:
        """See Publisher."""
        executions = [asyncio.run_coroutine_threadsafe(self._execute(run), self._loop) for run in runs]
        for execution in executions:
            execution.result()
        return [Published() for _ in runs]

    async def outcome(self, run_id: str) -> str:
        """How the next segment of the run has ended."""
        return await self._outcomes[run_id].get()

    async def _execute(self, run: ReadyRun) -> None:
        result = await self._executor.execute(run.run_id, revision=run.revision)
        self._outcomes[run.run_id].put_nowait(result.outcome)


class LiveSystem(LocalSystem):
    """A server in memory that gives its runs what they need by itself: threads handle its hints, the event loop executes."""

    def __init__(self) -> None:
        super().__init__()
        self.hints = MemoryWakeups(self.clock)
        self.context = replace(self.context, wakeups=self.hints)
        self.server = Server(self.context)
        self.live_publisher = LivePublisher(self.executor(*ALL))
        self.attention = Attention(self.context, self.live_publisher)

    async def outcome(self, run_id: str) -> str:
        """How the next segment of the run has ended."""
        return await self.live_publisher.outcome(run_id)


@asynccontextmanager
async def live_system() -> AsyncIterator[LiveSystem]:
    """A system that is alive until the context ends."""
    system = LiveSystem()
    system.hints.start(system.attention.handle, threads=HINT_THREADS)
    try:
        yield system
    finally:
        await asyncio.to_thread(system.hints.stop)
