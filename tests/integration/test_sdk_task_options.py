"""A task with another retry strategy is another way to try the same calls."""

import asyncio

from aiki_push import Failed, Run, WorkflowVersion, fixed, task, workflow
from tests.integration.executions import COMPLETED, FAILED
from tests.integration.replays import Replaying
from tests.local_system import LocalSystem

attempts: list[str] = []


@task("unsteady")
async def unsteady(name: str) -> str:
    attempts.append(name)
    if attempts.count(name) < 3:
        raise ConnectionError(name)
    return name


steady = unsteady.with_("retry", fixed(max_attempts=3, delay_ms=1))


@workflow("trying").v("1.0.0")
async def trying(run: Run, name: str) -> str:
    return await (steady if name == "steady" else unsteady).start(run, name)


async def test_the_copy_is_tried_again_and_the_original_is_not() -> None:
    system = LocalSystem()
    kept, lost = [await trying.start(system.client(), name) for name in ("steady", "unsteady")]
    results = [await system.executor(trying).execute(handle.id, revision=0) for handle in (kept, lost)]
    assert (results, attempts) == ([COMPLETED, FAILED], ["steady", "steady", "steady", "unsteady"])
    assert (await kept.wait()).value() == "steady"
    assert isinstance((await lost.wait()).state, Failed)


async def test_what_is_recorded_of_the_original_counts_for_the_copy() -> None:
    called: list[str] = []

    @task("greet")
    def greet(name: str) -> str:
        called.append(name)
        return f"hello {name}"

    def deployed(is_configured: bool) -> WorkflowVersion[[str], str]:
        @workflow("greeting").v("1.0.0")
        async def greeting(run: Run, name: str) -> str:
            greeted = await (greet.with_("retry", fixed(max_attempts=2, delay_ms=1)) if is_configured else greet).start(run, name)
            await asyncio.sleep(60)
            return greeted

        return greeting

    before, after = Replaying(deployed(False)), deployed(True)
    handle = await after.start(before.client, "Ada")
    assert await before.segment(handle.id) == "parked"
    before.deploy(after)
    assert await before.segment(handle.id) == "completed"
    assert ((await handle.wait()).value(), called) == ("hello Ada", ["Ada"])
