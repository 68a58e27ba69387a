"""Appends that get no answer, of executors from whom the run was taken meanwhile."""

from typing import Any

from aiki_push import Run, task
from aiki_push.domain.errors import ServerUnreachable
from aiki_push.domain.run_states import Queued
from aiki_push.ports.api.checkpoints import AppendCheckpoint, HandBack
from aiki_push.ports.api.operation import Operation
from aiki_push.sdk.executor import SegmentResult
from aiki_push.testing import FakeClock
from tests.integration.crashes import recover
from tests.integration.executions import version_of
from tests.local_system import LocalSystem


@task("only")
async def only() -> str:
    return "1"


async def body(run: Run) -> str:
    return await only.start(run)


async def test_a_hand_back_that_is_refused_because_the_run_moved_on_settles_the_segment() -> None:
    clock = FakeClock()
    system = LocalSystem(clock=clock)
    run_id = (await version_of(body).start(system.client())).id
    api = system.faulty_api()

    async def cut_off(operation: Operation[Any]) -> None:
        if isinstance(operation, AppendCheckpoint) and not isinstance(operation.end, HandBack):
            recover(system, clock, run_id)
            raise ServerUnreachable("no route")

    api.before = cut_off
    assert await system.executor(version_of(body), api=api).execute(run_id, revision=0) == SegmentResult("lost")
    assert system.run(run_id).state == Queued(reason="recovery")
