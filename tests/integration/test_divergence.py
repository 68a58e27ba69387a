"""Changed code against a recorded run: what is safe goes on, what is not stops before anything new runs."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

import pytest
from pydantic import BaseModel

from aiki_push import Run, WorkflowVersion, task, workflow
from aiki_push.domain.log_records import TaskStarted
from aiki_push.domain.run_states import Stalled
from aiki_push.sdk.executor import SegmentResult
from aiki_push.testing import FakeClock
from tests.integration.crashes import execute_until_power_cut, recover
from tests.local_system import LocalSystem

Body = Callable[["Tasks", Run], Awaitable[str]]


@dataclass
class Tasks:
    """Tasks that say which of them ran."""

    ran: list[str] = field(default_factory=list)

    async def a(self, run: Run, value: int = 0) -> str:
        return await self._call("a", run, value)

    async def b(self, run: Run, value: int = 0) -> str:
        return await self._call("b", run, value)

    async def c(self, run: Run, value: int = 0) -> str:
        return await self._call("c", run, value)

    async def _call(self, name: str, run: Run, value: int) -> str:
        @task(name)
        async def named(number: int) -> str:
            self.ran.append(f"{name}({number})")
            return f"{name}{number}"

        return await named.start(run, value)


def deployed(tasks: Tasks, body: Body) -> WorkflowVersion[[], str]:
    """The one version of the workflow, with this body."""

    @workflow("changing").v("1.0.0")
    async def changing(run: Run) -> str:
        return await body(tasks, run)

    return changing


async def crash(system: LocalSystem, clock: FakeClock, version: WorkflowVersion[[], str], *, after: int) -> str | None:
    """A run whose executor died after `after` checkpoints, recovered; None where it needed no more than that."""
    run_id = (await version.start(system.client())).id
    if not await execute_until_power_cut(system, version, run_id, after=after):
        return None
    recover(system, clock, run_id)
    return run_id


async def resume(system: LocalSystem, run_id: str, body: Body) -> tuple[SegmentResult, list[str]]:
    """Execute the run with this body deployed; the result, and the tasks that ran."""
    tasks = Tasks()
    return await system.executor(deployed(tasks, body)).execute(run_id, revision=None), tasks.ran


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def system(clock: FakeClock) -> LocalSystem:
    return LocalSystem(clock=clock)


async def original(tasks: Tasks, run: Run) -> str:
    return await tasks.a(run) + await tasks.b(run) + await tasks.c(run)


async def reordered(tasks: Tasks, run: Run) -> str:
    return await tasks.b(run) + await tasks.a(run) + await tasks.c(run)


async def with_one_removed(tasks: Tasks, run: Run) -> str:
    return await tasks.b(run) + await tasks.c(run)


async def with_one_appended(tasks: Tasks, run: Run) -> str:
    return await original(tasks, run) + await tasks.c(run, 1)


async def with_one_inserted(tasks: Tasks, run: Run) -> str:
    return await tasks.c(run, 1) + await original(tasks, run)


async def with_another_input(tasks: Tasks, run: Run) -> str:
    return await tasks.a(run, 1) + await tasks.b(run) + await tasks.c(run)


async def on_another_branch(tasks: Tasks, run: Run) -> str:
    return await tasks.a(run) + await tasks.b(run, 1)


async def cut_off_in_c(system: LocalSystem, clock: FakeClock) -> str:
    """a and b have completed; c was running when its executor died."""
    run_id = await crash(system, clock, deployed(Tasks(), original), after=3)
    assert run_id is not None
    return run_id


@pytest.mark.parametrize(
    ("body", "ran"),
    [
        (original, ["c(0)"]),
        (reordered, ["c(0)"]),
        (with_one_removed, ["c(0)"]),
        (with_one_appended, ["c(0)", "c(1)"]),
    ],
    ids=["unchanged", "reordered", "removed", "appended"],
)
async def test_what_is_reordered_removed_or_appended_goes_on(
    system: LocalSystem, clock: FakeClock, body: Body, ran: list[str]
) -> None:
    run_id = await cut_off_in_c(system, clock)
    assert await resume(system, run_id, body) == (SegmentResult("completed"), ran)


@pytest.mark.parametrize(
    ("body", "names"),
    [
        (with_one_inserted, ["c (call 1", "a (task", "b (task", "c (task"]),
        (with_another_input, ["a (call 1", "a (task", "b (task", "c (task"]),
        (on_another_branch, ["b (call 1", "b (task", "c (task"]),
    ],
    ids=["inserted", "another input", "another branch"],
)
async def test_what_is_inserted_or_changed_stalls_the_run_before_anything_new_and_a_rollback_resumes_it(
    system: LocalSystem, clock: FakeClock, body: Body, names: list[str]
) -> None:
    run_id = await cut_off_in_c(system, clock)
    before = [record for record in system.records(run_id) if isinstance(record, TaskStarted)]

    assert await resume(system, run_id, body) == (SegmentResult("stalled"), [])

    handle = await deployed(Tasks(), original).get(system.client(), run_id)
    assert handle.run.state == Stalled(reason="diverged")
    assert handle.run.explanation is not None
    assert [name for name in names if name not in handle.run.explanation] == []
    assert [record for record in system.records(run_id) if isinstance(record, TaskStarted)] == before

    await handle.requeue()
    assert await resume(system, run_id, original) == (SegmentResult("completed"), ["c(0)"])


async def side_by_side(tasks: Tasks, run: Run) -> str:
    async def branch(value: int) -> str:
        return await tasks.a(run, value) + await tasks.b(run, value)

    return "".join(await asyncio.gather(branch(1), branch(2), branch(3))) + await tasks.c(run)


async def test_a_crash_anywhere_in_a_parallel_group_never_looks_like_a_divergence(system: LocalSystem, clock: FakeClock) -> None:
    crashes = 0
    for after in range(100):
        run_id = await crash(system, clock, deployed(Tasks(), side_by_side), after=after)
        if run_id is None:
            break
        crashes += 1
        result, _ = await resume(system, run_id, side_by_side)
        assert result == SegmentResult("completed")
    assert crashes >= 3


class AddressBefore(BaseModel):
    street: str


class AddressAfter(BaseModel):
    street: str
    country: str = "DE"


@dataclass
class LineBefore:
    article: str


@dataclass
class LineAfter:
    article: str
    gift: bool = False
    notes: list[str] = field(default_factory=list)


class OrderBefore(BaseModel):
    to: AddressBefore
    lines: list[LineBefore]


class OrderAfter(BaseModel):
    to: AddressAfter
    lines: list[LineAfter]
    priority: int | None = None


def ordering(
    order_type: type[OrderBefore | OrderAfter], order: OrderBefore | OrderAfter, ran: list[str]
) -> WorkflowVersion[[], str]:
    @task("book", input=order_type, output=order_type)
    async def book(given: BaseModel) -> BaseModel:
        ran.append("book")
        return given

    @task("ship")
    async def ship(street: str) -> str:
        ran.append("ship")
        return street

    @workflow("changing").v("1.0.0")
    async def changing(run: Run) -> str:
        booked = await book.start(run, order)
        assert type(booked) is order_type
        return await ship.start(run, "Example Street 1")

    return changing


async def test_fields_with_a_default_can_be_added_at_any_depth_while_runs_are_under_way(
    system: LocalSystem, clock: FakeClock
) -> None:
    before = OrderBefore(to=AddressBefore(street="Example Street 1"), lines=[LineBefore("pen"), LineBefore("ink")])
    after = OrderAfter(to=AddressAfter(street="Example Street 1"), lines=[LineAfter("pen"), LineAfter("ink")])
    run_id = await crash(system, clock, ordering(OrderBefore, before, []), after=2)
    assert run_id is not None
    ran: list[str] = []
    assert await system.executor(ordering(OrderAfter, after, ran)).execute(run_id, revision=None) == SegmentResult("completed")
    assert ran == ["ship"]
