"""Executors that die at a chosen moment, and what comes after."""

from collections.abc import Callable
from typing import Any

from aiki_push.domain.run_states import Queued
from aiki_push.ports.api.checkpoints import AppendCheckpoint
from aiki_push.ports.api.operation import Operation
from aiki_push.sdk.workflow_version import AnyWorkflowVersion
from aiki_push.testing import FakeClock
from tests.local_system import NAMESPACE, LocalSystem


class PowerCut(AssertionError):
    """The executor dies here: this request never left the machine, and nothing more is written."""


def checkpoints_allowed(number: int) -> Callable[[Operation[Any]], Any]:
    """A hook for `FaultyApi.before`: the power goes when the next checkpoint after `number` of them is sent."""
    sent = 0

    async def before(operation: Operation[Any]) -> None:
        nonlocal sent
        if isinstance(operation, AppendCheckpoint):
            if sent == number:
                raise PowerCut
            sent += 1

    return before


async def execute_until_power_cut(system: LocalSystem, version: AnyWorkflowVersion, run_id: str, *, after: int) -> bool:
    """Execute until `after` checkpoints are written; False where the segment needed no more than that."""
    api = system.faulty_api()
    api.before = checkpoints_allowed(after)
    try:
        await system.executor(version, api=api).execute(run_id, revision=None)
    except PowerCut:
        return True
    return False


def recover(system: LocalSystem, clock: FakeClock, run_id: str) -> None:
    """The claim goes stale and the run is queued again."""
    clock.advance(90_000)
    system.attention.advance(NAMESPACE, run_id)
    assert system.run(run_id).state == Queued(reason="recovery")
