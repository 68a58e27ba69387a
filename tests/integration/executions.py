"""Executing a workflow once, from its start to the end of its first segment."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from aiki_push import Run, WorkflowVersion, workflow
from aiki_push.sdk.executor import ExecutorConfig, SegmentResult
from tests.local_system import LocalSystem

COMPLETED = SegmentResult("completed")
FAILED = SegmentResult("failed")


def version_of(body: Callable[[Run], Awaitable[Any]]) -> WorkflowVersion[[], Any]:
    """The one version of a workflow with this body."""

    @workflow("tested").v("1.0.0")
    async def tested(run: Run) -> Any:
        return await body(run)

    return tested


async def execute(system: LocalSystem, body: Callable[[Run], Awaitable[Any]], **config: int) -> tuple[SegmentResult, str]:
    """Start a run of `body` and execute it; how the segment ended, and the run's id."""
    version = version_of(body)
    run_id = (await version.start(system.client())).id
    return await system.executor(version, config=ExecutorConfig(**config)).execute(run_id, revision=0), run_id


async def output_of(system: LocalSystem, run_id: str) -> Any:
    """The output of a run that has completed."""
    handle = await version_of(lambda _: asyncio.sleep(0)).get(system.client(), run_id)
    return (await handle.wait()).value()
