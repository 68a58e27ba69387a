"""Whatever reaches a run at whatever access of the table while an executor works on it: the workflow gets it, soon and once.

Nothing is left to chance: what is to come comes in the middle of the n-th access, for every n there is.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from itertools import combinations, product
from typing import Any, Literal, TypeAlias

import pytest

from aiki_push import Run, Slept, TimedOut, event, task, workflow
from aiki_push.adapters.storage.memory.table import MemoryTable
from aiki_push.domain.errors import StorageUnavailable
from aiki_push.domain.log_records import CallEnded, WaitEnded
from aiki_push.domain.log_records import Received as ReceivedRecord
from aiki_push.domain.values import DurationMs, RunId
from aiki_push.ports.api.controls import WakeUpRun
from aiki_push.ports.api.events import SendEvent
from aiki_push.ports.api.operation import Operation
from aiki_push.testing import FAKE_NOW, FaultyTable, Harness, SequentialEntropy
from tests.integration.table_accesses import Accesses, crash, executing
from tests.integration.waiting_runs import end
from tests.local_system import NAMESPACE, LocalSystem

FAR = timedelta(days=30)
HOUR_MS = 3_600_000
SOON_MS = 120_000
"""Two minutes: a claim may have to go stale first."""

Side = Literal["before", "after"]
SIDES: tuple[Side, ...] = ("before", "after")
Fate = Literal["lost", "crash"] | None
FATES: tuple[Fate, ...] = (None, "lost", "crash")
Place: TypeAlias = tuple[Side, int, Fate]
"""Before or after an access (only writes are met after), its number, and what becomes of it."""

Body: TypeAlias = Callable[[Run], Awaitable[list[object]]]

go = event("go", int)


@task("handler")
async def handler() -> None:
    await asyncio.sleep(4)


@workflow("elsewhere").v("1")
async def elsewhere(run: Run) -> str:
    """A child that the harness does not execute."""
    return "done"


async def one_event(run: Run) -> list[object]:
    return [(await go.wait(run, timeout=FAR))]


async def two_events(run: Run) -> list[object]:
    return list(await asyncio.gather(go.wait(run, timeout=FAR), go.wait(run)))


async def one_sleep(run: Run) -> list[object]:
    return [await run.sleep("nap", FAR)]


async def one_child(run: Run) -> list[object]:
    child = await elsewhere.start_as_child(run)
    return [await child.wait(timeout=FAR)]


async def event_or_deadline(run: Run) -> list[object]:
    """The event comes at the very instant of the deadline."""
    return [await go.wait(run, timeout=timedelta(hours=1))]


def beside_many(body: Body) -> Body:
    """`body` while so much else is waited for that the header holds one wait for each kind."""

    async def beside(run: Run) -> list[object]:
        others: list[asyncio.Task[Any]] = [asyncio.create_task(event(f"other-{number}").wait(run)) for number in range(20)]
        others += [asyncio.create_task(run.sleep(f"other-{number}", 2 * FAR)) for number in range(5)]
        got = await body(run)
        for other in others:
            other.cancel()
        return got

    return beside


def beside_a_handler(body: Body) -> Body:
    async def beside(run: Run) -> list[object]:
        got, _ = await asyncio.gather(body(run), handler.start(run))
        return got

    return beside


@dataclass
class Scene:
    """A run of `body`, and what comes at chosen accesses: `wanted` things in all, once each."""

    body: Body
    coming: str
    wanted: int = 1
    sent: int = 0
    sent_at: int = 0
    interrupted: int = 0
    outcomes: list[list[object]] = field(default_factory=list)

    def __post_init__(self) -> None:
        @workflow("waiting").v("1")
        async def waiting(run: Run) -> int:
            self.outcomes.append(await self.body(run))
            return len(self.outcomes[-1])

        bare = MemoryTable()
        self.table = FaultyTable(bare)
        self.version = waiting
        self.harness = Harness(waiting, table=self.table)
        self.clock = self.harness.client.clock
        self.other = LocalSystem(bare, clock=self.clock, entropy=SequentialEntropy(10**9))

    def send(self) -> None:
        """Let what is to come come now, in the middle of whatever goes on."""
        match self.coming:
            case "event":
                self.server_call(SendEvent(run_id=self.run_id, event="go", data=self.sent))
            case "event at its deadline":
                self.clock.sleep(DurationMs(max(0, FAKE_NOW + HOUR_MS - self.clock.now())))
                self.server_call(SendEvent(run_id=self.run_id, event="go", data=self.sent))
            case "early wake":
                if self.other.run(self.run_id).revision == 0:
                    return  # nobody has begun to execute it: this would wake it from nothing
                self.server_call(WakeUpRun(run_id=self.run_id, operation_id="wake", sleep="nap"))
            case _:
                if not (children := [one.run_id for one in self.other.records(self.run_id) if isinstance(one, CallEnded)]):
                    return  # it was not started yet: its end comes later
                end(self.other, children[0])
                self.other.attention.advance(NAMESPACE, children[0])
        self.sent += 1
        self.sent_at = self.clock.now()

    def server_call(self, operation: Operation[Any]) -> None:
        self.other.server.call(NAMESPACE, operation)

    def execute(self, *places: Place) -> int:
        """Execute the run, with something coming in the middle of these accesses; the rest comes when the run is parked.

        How many accesses there were until then, from its start on.
        """
        with self.harness as harness:

            async def scenario() -> int:
                handle = await self.version.start(harness.client)
                self.run_id = RunId(handle.id)
                accesses = Accesses(self.table)
                accesses.plan = {(side, number): partial(self.come, fate) for side, number, fate in places}
                await harness.settle()
                number, self.interrupted = accesses.number, self.sent
                while self.sent < self.wanted:
                    self.send()
                    await asyncio.sleep(1)
                await handle.wait()
                assert harness.now - self.sent_at < SOON_MS
                return number

            return harness.run(scenario())

    def come(self, fate: Fate) -> None:
        """Send in the middle of an access, which nobody hears of where it is `lost`, and which is the executor's last at a `crash`."""
        self.send()
        if fate == "lost":
            raise StorageUnavailable("nothing was heard of the table")
        if fate == "crash" and executing() == self.run_id:
            crash()

    def check(self) -> None:
        """What came was given, each to one wait, and the same on every replay."""
        assert self.outcomes == [self.outcomes[0]] * len(self.outcomes)
        records = self.other.records(self.run_id)
        taken = [one.seq for one in records if isinstance(one, ReceivedRecord)]
        assert sorted(taken) == list(range(1, self.wanted + 1))
        assert not [one for one in records if isinstance(one, WaitEnded)]
        assert not any(isinstance(one, TimedOut) or one == Slept(woken_early=False) for one in self.outcomes[0])


CASES = {"event": one_event, "event at its deadline": event_or_deadline, "early wake": one_sleep, "end of a child": one_child}
AROUND: dict[str, Callable[[Body], Body]] = {"alone": lambda body: body, "many": beside_many, "handler": beside_a_handler}


@pytest.mark.timeout(180)
@pytest.mark.parametrize("around", AROUND)
@pytest.mark.parametrize("coming", CASES)
def test_whatever_comes_at_any_access_of_the_table_is_given_soon_and_once(coming: str, around: str) -> None:
    def scene() -> Scene:
        return Scene(AROUND[around](CASES[coming]), coming)

    number, interleavings = scene().execute(), 0
    for side, place, fate in product(SIDES, range(1, number + 1), FATES):
        tested = scene()
        tested.execute((side, place, fate))
        tested.check()
        interleavings += tested.interrupted
    print(f"{coming}, {around}: {interleavings} interleavings")
    assert interleavings >= 15


@pytest.mark.timeout(180)
@pytest.mark.parametrize("around", AROUND)
def test_of_two_events_at_any_two_accesses_each_goes_to_one_wait(around: str) -> None:
    def scene() -> Scene:
        return Scene(AROUND[around](two_events), "event", wanted=2)

    number, interleavings = scene().execute(), 0
    for first, second in combinations(range(1, number + 1), 2):
        tested = scene()
        tested.execute(("before", first, None), ("before", second, None))
        tested.check()
        interleavings += tested.interrupted == 2
    print(f"two events, {around}: {interleavings} interleavings")
    assert interleavings >= 15
