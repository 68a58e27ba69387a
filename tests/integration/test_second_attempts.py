"""The second attempt of a workflow may go another way than the first, and may be cut off anywhere: that is no divergence."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta

import pytest

from aiki_push import Run, WorkflowVersion, event, fixed, task, workflow
from aiki_push.adapters.storage.memory.table import MemoryTable
from aiki_push.domain.log_records import AnyRecord, CallEnded, TaskCompleted, Transition
from aiki_push.domain.run_states import Stalled
from aiki_push.errors import TaskFailed
from aiki_push.testing import FaultyTable, Harness
from tests.integration.table_accesses import Accesses, crash, executing
from tests.local_system import LocalSystem

go = event("go", int)


@dataclass
class Outside:
    """What is outside of the run, and not replayed: whether the first task's service is up, and which attempt is the latest."""

    attempt: int = 0
    executed: list[str] = field(default_factory=list)


@workflow("child").v("1")
async def child(run: Run, number: int) -> int:
    await asyncio.sleep(60)
    return number


def version_in(outside: Outside) -> WorkflowVersion[[], list[object]]:
    @task("first")
    async def first() -> str:
        outside.executed.append("first")
        if outside.attempt < 2:
            raise ConnectionError("down")
        return "up"

    @task("step")
    async def step(name: str) -> str:
        outside.executed.append(name)
        return name

    @workflow("twice").v("1", retry=fixed(max_attempts=2, delay_ms=60_000))
    async def twice(run: Run) -> list[object]:
        outside.attempt = max(outside.attempt, run.attempt)
        seen: list[object] = []
        try:
            seen.append(await first.start(run))
        except TaskFailed:
            # Only the first attempt comes here.
            seen += await asyncio.gather(step.start(run, "instead"), step.start(run, "beside"))
            seen.append((await (await child.start_as_child(run, 1)).wait()).value())
            await run.sleep("nap", timedelta(minutes=5))
            seen.append((await go.wait(run)).data)
            raise
        # The others were done before; they come in another order now, and between new ones.
        seen.append(await step.start(run, "then"))
        seen.append(await step.start(run, "beside"))
        started, slept, got = await asyncio.gather(
            child.start_as_child(run, 1), run.sleep("nap", timedelta(minutes=5)), go.wait(run)
        )
        seen += [(await started.wait()).value(), slept.woken_early, got.data]
        seen.append((await (await child.start_as_child(run, 2)).wait()).value())
        seen.append((await go.wait(run)).data)
        return [*seen, await step.start(run, "last")]

    return twice


EXPECTED = ["up", "then", "beside", 1, False, 7, 2, 8, "last"]


def execute(plan: Callable[[Accesses], None]) -> tuple[Outside, list[AnyRecord], int]:
    """Execute the workflow, with `plan` for the accesses of the second attempt, and check what it returns.

    What was outside, the run's records, and how many accesses the second attempt made.
    """
    outside, bare = Outside(), MemoryTable()
    table, looking = FaultyTable(bare), LocalSystem(bare)
    version = version_in(outside)
    with Harness(version, child, table=table) as harness:

        async def scenario() -> tuple[list[AnyRecord], int]:
            handle = await version.start(harness.client)
            await go.send(handle, 7)
            accesses = Accesses(table, lambda: executing() == handle.id and looking.run(handle.id).attempts == 2)
            plan(accesses)
            await asyncio.sleep(3_600)
            await go.send(handle, 8)
            assert (await handle.wait()).value() == EXPECTED
            return list(harness.records(handle.id)), accesses.number

        records, number = harness.run(scenario())
    return outside, records, number


def check(records: list[AnyRecord]) -> None:
    assert not [one for one in records if isinstance(one, Transition) and isinstance(one.state, Stalled)]
    completed = [one.task_id for one in records if isinstance(one, TaskCompleted)]
    assert len(completed) == len(set(completed)) == 5
    children = [one.run_id for one in records if isinstance(one, CallEnded)]
    assert len(children) == len(set(children)) == 2


def test_a_task_that_had_failed_and_succeeds_in_the_next_attempt_leads_elsewhere() -> None:
    outside, records, _ = execute(lambda _: None)
    check(records)
    assert outside.executed == ["first", "instead", "beside", "first", "then", "last"]


@pytest.mark.parametrize("side", ["before", "after"])
def test_a_crash_at_any_access_of_the_table_in_the_second_attempt_changes_nothing(side: str) -> None:
    _, _, number = execute(lambda _: None)
    crashed = 0
    for place in range(1, number + 1):

        def plan(accesses: Accesses) -> None:
            accesses.plan[side, place] = crash  # noqa: B023 - called before the next one

        _, records, made = execute(plan)
        check(records)
        crashed += made != number
    print(f"{crashed} crashes {side} one of {number} accesses")
    assert crashed >= number // 4
