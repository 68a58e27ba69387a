"""The whole of aiki_push in one thread and in virtual time, for tests of workflows."""

import asyncio
import logging
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from functools import partial
from types import TracebackType
from typing import Any, Self, TypeVar

from aiki_push.adapters.storage.table import Table
from aiki_push.apps.connect import Client
from aiki_push.domain.errors import AikiError, ServerUnreachable, StorageUnavailable
from aiki_push.domain.inbox import Message
from aiki_push.domain.limits import Limits
from aiki_push.domain.log_records import AnyRecord, Transition
from aiki_push.domain.run import Run
from aiki_push.domain.run_states import Running
from aiki_push.domain.values import TimestampMs
from aiki_push.ports.api.operation import Api
from aiki_push.ports.clock import Clock
from aiki_push.ports.entropy import Entropy
from aiki_push.ports.publisher import Failed, Outcome, Published, ReadyRun
from aiki_push.sdk.client import Client as AnyClient
from aiki_push.sdk.executor import Executor, ExecutorConfig
from aiki_push.sdk.registry import Registry
from aiki_push.sdk.replay.outside_world import place_of
from aiki_push.sdk.run import ContextFactory
from aiki_push.sdk.workflow_version import AnyWorkflowVersion
from aiki_push.testing.agenda import LOOK_AGAIN_MS, Agenda
from aiki_push.testing.clocks import FakeClock
from aiki_push.testing.entropy import SequentialEntropy
from aiki_push.testing.local_system import NAMESPACE, LocalSystem
from aiki_push.testing.loop_keeper import LoopKeeper
from aiki_push.testing.run_ends import HoldingApi, RunEnds, TellingStore
from aiki_push.testing.standstill import where_runs_stand
from aiki_push.testing.virtual_time import NothingHappens, VirtualLoop

T = TypeVar("T")

_log = logging.getLogger(__name__)


class NotExecuting(AikiError):
    """Nothing executes the run at this moment, so nothing can crash. Wait until one of its handlers has begun."""


class _HarnessClient(Client):
    """What authors call a client, but in virtual time."""

    def __init__(self, connect: Callable[[], Api], *, clock: Clock, entropy: Entropy, context: ContextFactory | None) -> None:
        AnyClient.__init__(self, connect, clock=clock, entropy=entropy, context=context)


class Harness:
    """A server in memory, and an executor of `versions`, for the coroutines that `run` is given. Close it, or use it in a `with`.

    Time jumps to whatever happens next: a wait of 30 days is over at once. It begins at 2026-01-01T00:00:00Z, and ids are counted,
    so the same scenario has the same history each time.
    `table` is where the runs are stored, say a FaultyTable or a CountingTable. `context` makes `run.context`.
    """

    def __init__(
        self,
        *versions: AnyWorkflowVersion,
        table: Table | None = None,
        limits: Limits = Limits(),
        config: ExecutorConfig = ExecutorConfig(),
        context: ContextFactory | None = None,
    ) -> None:
        self._clock, entropy, ends = FakeClock(), SequentialEntropy(), RunEnds()
        self._system = LocalSystem(
            table,
            clock=self._clock,
            entropy=entropy,
            limits=limits,
            store=partial(TellingStore, on_end=ends.tell),
        )
        self._system.publisher.answer = self._take
        # Long enough for a claim that nobody keeps to be taken away.
        self._agenda = Agenda(self._system, longest_quiet_ms=2 * limits.claim_idle_timeout_ms)
        self._config = config
        self._versions: dict[tuple[str, str], AnyWorkflowVersion] = {}
        self._executions: dict[asyncio.Task[None], str] = {}
        self._loop = VirtualLoop(self._clock, self._idle)
        self._loop.set_exception_handler(self._hear)
        self._scenario: asyncio.Task[Any] | None = None
        self._settling: list[asyncio.Future[None]] = []
        self._faults: list[BaseException] = []
        self._fault: asyncio.Future[None] = self._loop.create_future()
        self.client: Client = _HarnessClient(
            lambda: HoldingApi(self._system.api(), ends), clock=self._clock, entropy=entropy, context=context
        )
        self.add(*versions)

    def add(self, *versions: AnyWorkflowVersion) -> None:
        """Execute these too. One with the name and version of an earlier one takes its place, as when changed code is deployed.

        Raises as Registry.
        """
        if versions:
            self._versions |= {(version.name, version.version): version for version in Registry(versions).all()}
            registry = Registry(tuple(self._versions.values()))
            self._executor = Executor(self.client, registry, config=self._config, name="harness", keeper=LoopKeeper)

    @property
    def now(self) -> TimestampMs:
        """The virtual time, in milliseconds since the epoch."""
        return self._clock.now()

    def run(self, scenario: Coroutine[Any, Any, T]) -> T:
        """What `scenario` returns or raises, once it has ended. What still goes on then is cancelled; the runs stay as they are.

        Raises NothingHappens, and what nobody else would hear of: an error of the server, of the context factory, of a task of
        asyncio that nobody awaits.
        """
        self._faults, self._fault = [], self._loop.create_future()
        self._scenario = main = self._loop.create_task(scenario, name="scenario")
        ends: list[asyncio.Future[Any]] = [main, self._fault]
        try:
            self._loop.run_until_complete(asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED))
        finally:
            self._scenario = None
            self._cancel({main} | asyncio.all_tasks(self._loop))
        if self._faults:
            raise self._faults[0]
        return main.result()

    async def settle(self) -> None:
        """Wait until nothing more happens at the present instant: each run has ended, or waits for its time or for the scenario.

        Time passes only while a run is being executed: as long as its handlers take.
        """
        settled: asyncio.Future[None] = self._loop.create_future()
        self._settling.append(settled)
        await settled

    def crash(self, run_id: str) -> None:
        """Have the process die that executes the run, without another word: its claim goes stale, and the run is recovered.

        The `finally` blocks of handlers are executed, unlike in a real crash. Raises NotExecuting, NotFound.
        """
        executions = [execution for execution, of in self._executions.items() if of == run_id]
        if not executions:
            raise NotExecuting(f"run {run_id} is {self.header(run_id).state.status}, and no executor has it")
        for execution in executions:
            execution.cancel()

    def header(self, run_id: str) -> Run:
        """The run as stored. Raises NotFound."""
        return self._system.run(run_id)

    def records(self, run_id: str) -> Sequence[AnyRecord]:
        """What the run did, oldest first. Raises NotFound."""
        return self._system.records(run_id)

    def messages(self, run_id: str) -> Sequence[Message]:
        """What the run was told, oldest first: its inbox, which a replay needs beside its records."""
        return self._system.store.inbox(NAMESPACE, run_id, after=0)

    def segments(self, run_id: str) -> int:
        """How often an executor took the run up: at its start, and each time that it went on after a wait or a crash. Raises NotFound."""
        return sum(isinstance(one, Transition) and isinstance(one.state, Running) for one in self.records(run_id))

    def close(self) -> None:
        """Close the event loop; nothing can be run afterwards."""
        if self._loop.is_closed():
            return
        try:
            self._cancel(asyncio.all_tasks(self._loop))
            self._loop.run_until_complete(self._loop.shutdown_asyncgens())
        finally:
            self._loop.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        self.close()

    # ---- executing what the server offers

    def _take(self, ready: ReadyRun) -> Outcome:
        if (ready.workflow, ready.version) not in self._versions:
            return Failed(f"the harness was not given {ready.workflow} {ready.version}")
        execution = self._loop.create_task(self._execute(ready), name=f"the execution of {ready.run_id}")
        self._executions[execution] = ready.run_id
        execution.add_done_callback(self._executed)
        return Published()

    async def _execute(self, ready: ReadyRun) -> None:
        try:
            await self._executor.execute(ready.run_id, revision=ready.revision)
        except (ServerUnreachable, StorageUnavailable) as error:
            _log.warning("run %s could not be claimed, and is offered again: %s", ready.run_id, error)

    def _executed(self, execution: asyncio.Task[None]) -> None:
        del self._executions[execution]
        self._agenda.note_end()
        if not execution.cancelled():
            execution.result()  # an error goes to the event loop's handler of exceptions

    def _hear(self, loop: asyncio.AbstractEventLoop, context: Mapping[str, Any]) -> None:
        error = context.get("exception")
        if error is None:
            loop.default_exception_handler(dict(context))
            return
        self._faults.append(error)
        if not self._fault.done():
            self._fault.set_result(None)

    # ---- passing time

    def _idle(self, timer_ms: int | None) -> None:
        """Nothing is ready to run: do what is due, or let time pass."""
        if self._scenario is None:
            self._wait_for_the_cancelled(timer_ms)
            return
        try:
            self._go_on(timer_ms)
        except StorageUnavailable:
            self._clock.advance(LOOK_AGAIN_MS if timer_ms is None else min(timer_ms, LOOK_AGAIN_MS))

    def _go_on(self, timer_ms: int | None) -> None:
        due_ms, due = self._agenda.earliest()
        if due is not None and due_ms == 0:
            self._loop.call_soon(self._agenda.advance, due)
        elif self._settling and not self._executions:
            self._end_settling()
        else:
            self._pass(due_ms, timer_ms)

    def _end_settling(self) -> None:
        for settled in self._settling:
            if not settled.done():
                settled.set_result(None)
        self._settling.clear()

    def _pass(self, due_ms: int | None, timer_ms: int | None) -> None:
        step_ms = self._agenda.next_ms(
            due_ms=due_ms, timer_ms=timer_ms, foreground_ms=self._loop.foreground_ms, claims=len(self._executions)
        )
        if step_ms is None:
            place = "".join(f" ({place_of(frame)})" for frame in (self._scenario.get_stack() if self._scenario else ()))
            raise NothingHappens(f"nothing more can happen, and the scenario waits{place}:\n{where_runs_stand(self._system)}")
        self._clock.advance(step_ms)

    def _cancel(self, tasks: Iterable[asyncio.Task[Any]]) -> None:
        async def end() -> None:
            await asyncio.gather(*tasks, return_exceptions=True)

        for task in tasks:
            task.cancel()
        self._loop.run_until_complete(end())

    def _wait_for_the_cancelled(self, timer_ms: int | None) -> None:
        if timer_ms is None:
            names = ", ".join(sorted(task.get_name() for task in asyncio.all_tasks(self._loop)))
            raise NothingHappens(f"the scenario is over, but {names} does not end, although it was cancelled")
        self._clock.advance(timer_ms)
