"""What workflows and tasks log, and the context that a client makes for each execution."""

import asyncio
import logging
from typing import Any

import pytest

from aiki_push import Run, RunInfo, WorkflowVersion, task, task_info, workflow
from aiki_push.domain.run import RunOptions
from aiki_push.domain.run_states import Running
from aiki_push.errors import TaskFailed
from tests.integration.crashes import PowerCut, checkpoints_allowed, recover
from tests.integration.replays import Replaying

PARKED_FIVE_TIMES = [*5 * ["parked"], "completed"]


@task("step")
async def step(number: int) -> int:
    task_info().logger.warning("in the step", extra={"number": number})
    return number


@task("refuse")
def refuse() -> None:
    raise ValueError("no")


@workflow("logging").v("1.0.0")
async def logs(run: Run, name: str) -> None:
    run.logger.info("begins")
    run.logger.debug("is not enabled")
    for number in range(5):
        await step.start(run, number)
        run.logger.info("step %d of %s", number, name, extra={"more": number})
        try:
            await refuse.start(run)
        except TaskFailed as error:
            run.logger.exception("refused", exc_info=error)
        try:
            async with asyncio.timeout(1):
                run.logger.log(logging.WARNING, "sleeps")
                await asyncio.sleep(9)
        except TimeoutError:
            run.logger.info("woken")
    run.logger.info("ends")


async def test_each_line_is_logged_once_over_five_replays(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "aiki_push.workflow")
    stage = Replaying(logs)
    handle = await logs.start(stage.client, "n")
    assert await stage.execute(handle.id) == PARKED_FIVE_TIMES
    lines = [record.getMessage() for record in caplog.records if record.name == "aiki_push.workflow"]
    assert lines == [
        "begins",
        *(line for number in range(5) for line in (f"step {number} of n", "refused", "sleeps", "woken")),
        "ends",
    ]


def facts_of(record: logging.LogRecord) -> dict[str, Any]:
    return {name: value for name, value in vars(record).items() if name.startswith("aiki.") or name in ("more", "number")}


async def test_a_line_says_which_run_it_belongs_to_and_where_it_was_written(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "aiki_push.workflow")
    stage = Replaying(logs)
    handle = await logs.start(stage.client, "n")
    await stage.execute(handle.id)
    line = next(record for record in caplog.records if record.getMessage() == "step 0 of n")
    assert facts_of(line) == {
        "aiki.run_id": handle.id,
        "aiki.workflow": "logging",
        "aiki.version": "1.0.0",
        "aiki.attempt": 1,
        "more": 0,
    }
    assert (line.filename, line.funcName) == ("test_sdk_logging.py", "logs")
    of_a_task = next(record for record in caplog.records if record.name == "aiki_push.task")
    assert facts_of(of_a_task) == {"aiki.run_id": handle.id, "aiki.task": "step", "aiki.attempt": 1, "number": 0}


async def test_a_line_before_a_timer_is_not_repeated_after_it(caplog: pytest.LogCaptureFixture) -> None:
    @workflow("sleeping").v("1.0.0")
    async def sleeping(run: Run) -> None:
        run.logger.warning("falls asleep")
        await asyncio.sleep(60)
        run.logger.warning("wakes up")

    stage = Replaying(sleeping)
    assert await stage.execute((await sleeping.start(stage.client)).id) == ["parked", "completed"]
    assert [record.getMessage() for record in caplog.records] == ["falls asleep", "wakes up"]


async def test_nothing_is_logged_while_a_workflow_is_closed(caplog: pytest.LogCaptureFixture) -> None:
    @workflow("closing").v("1.0.0")
    async def closing(run: Run) -> None:
        try:
            await asyncio.sleep(60)
        finally:
            run.logger.warning("closing, suspending: %s", run.suspending)

    stage = Replaying(closing)
    handle = await closing.start(stage.client)
    assert await stage.execute(handle.id) == ["parked", "completed"]
    assert [record.getMessage() for record in caplog.records] == ["closing, suspending: False"]


async def test_a_line_before_the_first_record_is_logged_again_where_nobody_knows_that_it_was(
    caplog: pytest.LogCaptureFixture,
) -> None:
    @workflow("cut-off").v("1.0.0")
    async def cut_off(run: Run) -> int:
        run.logger.warning("begins")
        return await step.start(run, 1)

    stage = Replaying(cut_off)
    handle = await cut_off.start(stage.client)
    api = stage.system.faulty_api()
    api.before = checkpoints_allowed(0)
    with pytest.raises(PowerCut):
        await stage.system.executor(cut_off, api=api).execute(handle.id, revision=None)
    recover(stage.system, stage.clock, handle.id)
    assert await stage.execute(handle.id) == ["completed"]
    assert [record.getMessage() for record in caplog.records if record.name == "aiki_push.workflow"] == ["begins", "begins"]


def with_context_seen() -> tuple[list[Any], WorkflowVersion[[], None]]:
    """The contexts that executions were given, and a version that adds to them and parks twice."""
    contexts: list[Any] = []

    @workflow("with-context").v("1.0.0", pool="p", priority=2)
    async def with_context(run: Run) -> None:
        contexts.append(run.context)
        await asyncio.sleep(3_600)
        await asyncio.sleep(3_600)

    return contexts, with_context


@pytest.mark.parametrize("is_async", [False, True])
async def test_a_context_is_made_once_for_each_segment_from_the_facts_of_the_run(*, is_async: bool) -> None:
    seen: list[RunInfo] = []

    def plain(run: RunInfo) -> int:
        seen.append(run)
        return len(seen)

    async def awaited(run: RunInfo) -> int:
        await asyncio.sleep(0)
        return plain(run)

    contexts, version = with_context_seen()
    stage = Replaying(version, context=awaited if is_async else plain)
    handle = await version.start(stage.client)
    assert await stage.execute(handle.id) == ["parked", "parked", "completed"]
    options = RunOptions(pool="p", priority=2)
    assert seen == 3 * [RunInfo(id=handle.id, workflow="with-context", version="1.0.0", attempt=1, options=options)]
    assert contexts == [1, 2, 3]


async def test_without_a_factory_the_context_is_none() -> None:
    contexts, version = with_context_seen()
    stage = Replaying(version)
    await stage.execute((await version.start(stage.client)).id)
    assert contexts == [None, None, None]


class NoDatabase(Exception):
    pass


async def test_a_factory_that_raises_executes_nothing_and_the_run_is_tried_again_after_its_claim() -> None:
    contexts, version = with_context_seen()
    failures = [NoDatabase("away")]

    def context(run: RunInfo) -> str:
        if failures:
            raise failures.pop()
        return "connected"

    stage = Replaying(version, context=context)
    run_id = (await version.start(stage.client)).id
    with pytest.raises(NoDatabase):
        await stage.execute(run_id)
    assert (contexts, type(stage.system.run(run_id).state)) == ([], Running)
    recover(stage.system, stage.clock, run_id)
    assert await stage.execute(run_id) == ["parked", "parked", "completed"]
    assert contexts == 3 * ["connected"]
