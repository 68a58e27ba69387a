"""What a workflow's own error handling sees when its run is parked: nothing. Parking drops the coroutine and throws nothing into it."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from datetime import timedelta

import pytest

from aiki_push import Run, WorkflowVersion, event, task, workflow
from aiki_push.domain.log_records import TaskStarted
from aiki_push.testing import Harness

go = event("go", int)

executed: list[str] = []


@task("note")
async def note(what: str) -> str:
    executed.append(what)
    return what


@workflow("broad-except").v("1")
async def broad_except(run: Run) -> int:
    try:
        return (await go.wait(run)).data
    except Exception:  # noqa: BLE001 - what this test is about
        await note.start(run, "swallowed")
        return -1


@workflow("bare-except").v("1")
async def bare_except(run: Run) -> int:
    try:
        return (await go.wait(run)).data
    except:  # noqa: E722 - what this test is about
        await note.start(run, "swallowed")
        return -1


@workflow("suppressing").v("1")
async def suppressing(run: Run) -> int:
    with contextlib.suppress(BaseException):
        return (await go.wait(run)).data
    await note.start(run, "swallowed")
    return -1


@workflow("finally-await").v("1")
async def finally_await(run: Run) -> int:
    try:
        got = await go.wait(run)
    finally:
        # Runs at every suspension too, and does nothing then.
        await note.start(run, "clean-up")
    return got.data


@contextlib.asynccontextmanager
async def noted(run: Run) -> AsyncIterator[None]:
    try:
        yield
    finally:
        if not run.suspending:
            await note.start(run, "clean-up")


@workflow("context-manager").v("1")
async def context_manager(run: Run) -> int:
    async with noted(run):
        return (await go.wait(run)).data


@workflow("nested").v("1")
async def nested(run: Run) -> int:
    async def branch() -> int:
        try:
            return (await go.wait(run)).data
        except BaseException:
            await note.start(run, "swallowed")
            raise

    try:
        async with asyncio.TaskGroup() as group:
            made = group.create_task(branch())
        return made.result()
    except* Exception:
        await note.start(run, "swallowed")
    return -1


@workflow("retrying-loop").v("1")
async def retrying_loop(run: Run) -> int:
    while True:
        try:
            return (await go.wait(run)).data
        except BaseException:
            continue


@pytest.mark.parametrize(
    ("version", "expected"),
    [
        (broad_except, []),
        (bare_except, []),
        (suppressing, []),
        (finally_await, ["clean-up"]),
        (context_manager, ["clean-up"]),
        (nested, []),
        (retrying_loop, []),
    ],
    ids=lambda given: given.name if isinstance(given, WorkflowVersion) else "",
)
def test_a_suspension_is_swallowed_by_nothing_and_nothing_durable_is_done_meanwhile(
    version: WorkflowVersion[[], int], expected: list[str]
) -> None:
    executed.clear()
    with Harness(version) as harness:

        async def scenario() -> None:
            handle = await version.start(harness.client)
            await harness.settle()
            assert harness.header(handle.id).state.status == "awaiting_event"
            assert executed == []
            assert not any(isinstance(record, TaskStarted) for record in harness.records(handle.id))
            await asyncio.sleep(timedelta(days=1).total_seconds())
            await go.send(handle, 7)
            assert (await handle.wait()).value() == 7
            assert executed == expected
            assert harness.segments(handle.id) == 2

        harness.run(scenario())
