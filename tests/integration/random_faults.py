"""What goes wrong while a random program runs, and what must hold all the same."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from random import Random
from typing import Literal, TypeVar

from aiki_push import event, fixed
from aiki_push.adapters.storage.memory.table import MemoryTable
from aiki_push.adapters.storage.table import Write
from aiki_push.domain.errors import IllegalTransition, StorageUnavailable
from aiki_push.domain.values import RunId
from aiki_push.ports.api.controls import PauseRun, ResumeRun, WakeUpRun
from aiki_push.testing import FAKE_NOW, FaultyTable, Harness, SequentialEntropy, replay
from tests.integration.random_checks import check_log, check_traces
from tests.integration.random_parts import Program, Sending
from tests.integration.random_workflows import RETRY_MS, unhandled_in, version_in
from tests.integration.random_world import World
from tests.integration.table_accesses import crash, executing
from tests.local_system import NAMESPACE, LocalSystem

T = TypeVar("T")

HOUR_MS = 3_600_000
MINUTE_S = 60

Kind = Literal["crash before", "crash after", "lose", "outage", "lost answers", "slow call", "pause"]


@dataclass(frozen=True, slots=True)
class Fault:
    """At the `at`th access of the table: the executor dies before it or after it, or the table gives no answer, for `lasts_ms`.

    `pause`: the run that is being executed is paused in the middle of that, for ten minutes.
    `slow call`: at the first checkpoint from there on that has to do with another run, and only such get no answer.
    """

    at: int
    kind: Kind
    lasts_ms: int = 0


@dataclass(frozen=True, slots=True)
class Disturbances:
    """`pauses`: the hours in which the run is paused for a while. `repeats`: how often each event is sent again."""

    faults: tuple[Fault, ...] = ()
    pauses: tuple[int, ...] = ()
    repeats: int = 0
    extra_s: Callable[[], float] = lambda: 0.0


def random_disturbances(seed: int, accesses: int, hours: int) -> Disturbances:
    """Some for a program that made so many accesses of the table, and took so many hours, when nothing went wrong."""
    random = Random(f"disturbances {seed}")
    kinds: Sequence[Kind] = ("crash before", "crash after", "lose", "outage", "lost answers", "slow call", "slow call", "pause")
    faults = [
        Fault(
            random.randint(1, accesses + accesses // 4), random.choice(kinds), random.choice([0, 3_000, 8_000, 20_000, 120_000])
        )
        for _ in range(random.choice([1, 2, 4]))
    ]
    pauses = [random.randint(0, hours) for _ in range(random.choice([0, 0, 1, 2]))]
    return Disturbances(tuple(sorted(faults, key=lambda fault: fault.at)), tuple(sorted(set(pauses))), random.randint(0, 2))


@dataclass
class Execution:
    """A program, executed once, with disturbances."""

    program: Program
    disturbances: Disturbances = Disturbances()
    accesses: int = 0
    by_executors: list[int] = field(default_factory=list)
    """The numbers of the accesses that executors made."""
    outcome: str = ""
    happened: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.world = World(extra_s=self.disturbances.extra_s)
        self.version = version_in(self.world)
        bare = MemoryTable()
        self.table = FaultyTable(bare)
        self.harness = Harness(self.version, table=self.table)
        self.other = LocalSystem(bare, clock=self.harness.client.clock, entropy=SequentialEntropy(10**9))
        self._faults = list(self.disturbances.faults)
        self._down_until, self._lossy_until, self._slow_until = 0, 0, 0

    def run(self) -> "Execution":
        """Execute the program, and check what must hold however it went. Gives itself."""
        self.table.before_read, self.table.before_write = self._before, self._before_write
        self.table.after_write = self._after
        with self.harness as harness:
            harness.run(self._scenario())
            self.hours = (harness.now - FAKE_NOW) // HOUR_MS
            self._stop_disturbing()
            for run_id in tuple(self.world.traces):
                records = harness.records(run_id)
                check_log(records, self.world.done)
                replay(self.version, records, messages=harness.messages(run_id), run_id=run_id)  # one more execution
        for traces in self.world.traces.values():
            check_traces(traces)
        assert not (unhandled := unhandled_in(self.world)), unhandled
        return self

    # ---- what goes wrong

    def _before(self, _: object) -> None:
        self.accesses += 1
        if executing():
            self.by_executors.append(self.accesses)
        self._act({"crash before": self._crash, "lose": self._lose, "outage": self._lose, "pause": self._hold})
        if self.harness.now < self._down_until:
            raise StorageUnavailable("the table is down")

    def _before_write(self, writes: Sequence[Write]) -> None:
        self._before(writes)
        if executing() and len(writes) > 1 and any(write.key.sk.startswith("L#") for write in writes):
            self._act({"slow call": self._lose})
            if self.harness.now < self._slow_until:
                raise StorageUnavailable("the table is slow")

    def _after(self, writes: Sequence[Write]) -> None:
        run_id = executing()
        if run_id and any(run_id in write.key.pk and write.key.sk[0] in "HL" for write in writes):
            self.world.wrote(run_id, asyncio.current_task())
        self._act({"crash after": self._crash, "lost answers": self._lose})
        if self.harness.now < self._lossy_until:
            raise StorageUnavailable("its answer is lost")

    def _act(self, actions: dict[str, Callable[[Fault], None]]) -> None:
        for fault in list(self._faults):
            if fault.at <= self.accesses and fault.kind in actions:
                actions[fault.kind](fault)

    def _crash(self, fault: Fault) -> None:
        if executing():
            self._faults.remove(fault)
            self.happened.append(f"{fault.kind} {fault.at} ({self.accesses})")
            crash()

    def _hold(self, fault: Fault) -> None:
        if run_id := executing():
            self._faults.remove(fault)
            self.happened.append(f"{fault.kind} {fault.at} ({self.accesses})")
            operation_id = f"hold-{fault.at}"
            with suppress(IllegalTransition):
                self.other.server.call(NAMESPACE, PauseRun(run_id=RunId(run_id), operation_id=operation_id))
            asyncio.get_running_loop().call_later(10 * MINUTE_S, self._release, RunId(run_id), f"release-{fault.at}")

    def _release(self, run_id: RunId, operation_id: str) -> None:
        with suppress(IllegalTransition):
            self.other.server.call(NAMESPACE, ResumeRun(run_id=run_id, operation_id=operation_id))

    def _lose(self, fault: Fault) -> None:
        self._faults.remove(fault)
        self.happened.append(f"{fault.kind} {fault.at} for {fault.lasts_ms} ms")
        if fault.kind == "outage":
            self._down_until = self.harness.now + fault.lasts_ms
        elif fault.kind == "lost answers":
            self._lossy_until = self.harness.now + fault.lasts_ms
        elif fault.kind == "slow call":
            self._slow_until = self.harness.now + fault.lasts_ms
        else:
            raise StorageUnavailable("nothing was heard of the table")

    def _stop_disturbing(self) -> None:
        self._faults, self._down_until, self._lossy_until, self._slow_until = [], 0, 0, 0

    # ---- what the world does

    async def _scenario(self) -> None:
        version = self.version.with_("reference.id", "the run")
        if self.program.is_retried:
            version = version.with_("retry", fixed(max_attempts=3, delay_ms=RETRY_MS))
        given = json.dumps({"body": self.program.body, "parent": ""})
        handle = await persist(lambda: version.start(self.harness.client, given))
        self.world.runs["p0"] = handle.id
        async with asyncio.TaskGroup() as group:
            for number, sending in enumerate(self.program.sendings):
                group.create_task(self._send(sending, number))
            for number, hour in enumerate(self.disturbances.pauses):
                group.create_task(self._pause(RunId(handle.id), hour, number))
            state = (await persist(handle.wait)).state
        self.outcome = str(getattr(state, "output", state.status))
        await self.harness.settle()

    async def _send(self, sending: Sending, number: int) -> None:
        await self._until(sending.hour)
        for _ in range(50):
            if sending.program in self.world.runs:
                break
            await asyncio.sleep(7 * HOUR_MS / 1_000)  # the second attempt of its parent comes to it later
        else:
            return
        send = partial(self._send_once, RunId(self.world.runs[sending.program]), sending, number)
        repeats = self.disturbances.repeats
        while await persist(send) and repeats:
            repeats -= 1
            await asyncio.sleep(20 * MINUTE_S)

    async def _send_once(self, run_id: RunId, sending: Sending, number: int) -> bool:
        """Whether it may be sent again: a wake that was too early must not come when it would not be."""
        client = self.harness.client
        if sending.data is not None:
            referenced = event(sending.name, int).with_("reference.id", f"sending {number}")
            await referenced.multicast(client, [run_id], sending.data)
            return True
        try:
            await client.api.call(WakeUpRun(run_id=run_id, operation_id=f"wake-{number}", sleep=sending.name))
        except IllegalTransition:
            return False
        return True

    async def _pause(self, run_id: RunId, hour: int, number: int) -> None:
        await self._until(hour)
        for minutes, request in ((15, PauseRun), (20, ResumeRun)):
            await asyncio.sleep(minutes * MINUTE_S)
            asked = partial(self.harness.client.api.call, request(run_id=run_id, operation_id=f"{request.__name__}-{number}"))
            try:
                await persist(asked)
            except IllegalTransition as error:
                self.happened.append(error.detail)

    async def _until(self, hour: int) -> None:
        await asyncio.sleep(max(0, (FAKE_NOW + hour * HOUR_MS - self.harness.now) / 1_000))


async def persist(action: Callable[[], Awaitable[T]]) -> T:
    """What `action` gives, once the table answers."""
    while True:
        try:
            return await action()
        except StorageUnavailable:
            await asyncio.sleep(1)
