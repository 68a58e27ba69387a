"""Workflows made of one function, and what becomes of their runs, in virtual time."""

from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias

from aiki_push import Failed, Finished, Run, WorkflowVersion, workflow
from aiki_push.domain.log_records import InputRecord, Transition
from aiki_push.sdk.workflow_version import AnyWorkflowVersion
from aiki_push.testing import Harness

Body: TypeAlias = Callable[[Run], Awaitable[Any]]


def version_of(body: Body, name: str = "tested") -> WorkflowVersion[[], Any]:
    """The one version of the workflow `name`, with this body."""

    @workflow(name).v("1.0.0")
    async def tested(run: Run) -> Any:
        return await body(run)

    return tested


def end_of(body: Body, *others: AnyWorkflowVersion) -> Finished[Any]:
    """How a run of this body ends, beside an executor of `others`. Where it fails, it has recorded nothing else."""
    version = version_of(body)

    async def scenario() -> Finished[Any]:
        handle = await version.start(harness.client)
        return await handle.wait()

    with Harness(version, *others) as harness:
        return harness.run(scenario())


def output_of(body: Body, *others: AnyWorkflowVersion) -> Any:
    """What a run of this body returns."""
    return end_of(body, *others).value()


def refusal_of(body: Body, *others: AnyWorkflowVersion) -> tuple[str, str]:
    """The error that a run of this body fails with, before anything of what it did is recorded: its name and message."""
    version = version_of(body)

    async def scenario() -> tuple[str, str]:
        handle = await version.start(harness.client)
        ended = await handle.wait()
        assert isinstance(ended.state, Failed)
        assert [record for record in harness.records(handle.id) if not isinstance(record, InputRecord | Transition)] == []
        return ended.state.error.name, ended.state.error.message

    with Harness(version, *others) as harness:
        return harness.run(scenario())
