"""Faults that a simulation found, each as the shortest story that shows it."""

from datetime import timedelta
from typing import Any

from aiki_push import Run, TimedOut, event, task, workflow
from aiki_push.adapters.storage.store import SingleTableStore
from aiki_push.ports.api.claims import GetLog
from aiki_push.ports.api.operation import Operation
from aiki_push.ports.store import LogPage, RunContents
from aiki_push.testing import FakeClock
from tests.integration.crashes import recover
from tests.local_system import NAMESPACE, LocalSystem

bell = event("bell", str)
heard: list[tuple[str, ...]] = []


@task("step")
async def step(name: str) -> str:
    return name


@workflow("patient").v("1")
async def patient(run: Run) -> str:
    steps = [await step.start(run, name) for name in "abc"]
    first = await bell.wait(run, timeout=timedelta(minutes=1))
    heard.append((*steps, "nothing" if isinstance(first, TimedOut) else first.data))
    second = await bell.wait(run)
    return await step.start(run, second.data)


class SlotBySlotStore(SingleTableStore):
    """Gives one slot of a log at a time."""

    def load_contents(self, namespace: str, run_id: str, *, max_bytes: int) -> RunContents:  # noqa: ARG002 - see Store
        """See Store."""
        return super().load_contents(namespace, run_id, max_bytes=1)

    def log(self, namespace: str, run_id: str, *, after: int, max_bytes: int) -> LogPage:  # noqa: ARG002 - see Store
        """See Store."""
        return super().log(namespace, run_id, after=after, max_bytes=1)


async def test_an_executor_that_loses_the_run_while_it_reads_the_log_never_sees_what_others_write_then() -> None:
    clock = FakeClock()
    system = LocalSystem(clock=clock, store=SlotBySlotStore)
    handle = await patient.start(system.client())
    await system.executor(patient).execute(handle.id, revision=None)
    clock.advance(60_000)
    system.attention.advance(NAMESPACE, handle.id)
    slow, pages = system.faulty_api(), 0

    async def overtaken(operation: Operation[Any]) -> None:
        nonlocal pages
        pages += isinstance(operation, GetLog)
        if isinstance(operation, GetLog) and pages == 2:
            recover(system, clock, handle.id)
            await bell.send(handle, "ding")
            assert (await system.executor(patient).execute(handle.id, revision=None)).outcome == "completed"
            heard.clear()

    slow.before = overtaken
    result = await system.executor(patient, api=slow).execute(handle.id, revision=None)
    assert (result.outcome, heard) == ("lost", [("a", "b", "c", "nothing")])
