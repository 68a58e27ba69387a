"""The sequence of the claims document, revision by revision: a zombie wakes up and can do nothing."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest

from aiki_push import Run, WorkflowVersion, task, workflow
from aiki_push.adapters.storage.table import Table
from aiki_push.domain.errors import RevisionConflict
from aiki_push.domain.limits import Limits
from aiki_push.domain.log_records import TaskCompleted, Transition
from aiki_push.ports.api.checkpoints import AppendCheckpoint
from aiki_push.ports.api.claims import Claimed, ClaimRun, RefreshClaim, ReleaseClaim
from aiki_push.sdk.executor import ExecutorConfig, SegmentResult
from aiki_push.testing import FakeClock
from tests.local_system import NAMESPACE, LocalSystem


@dataclass
class Stage:
    """What the executors did, and the gates that hold their first task."""

    executed: list[tuple[str, str]] = field(default_factory=list)
    first_started: asyncio.Event = field(default_factory=asyncio.Event)
    first_may_end: asyncio.Event = field(default_factory=asyncio.Event)


def two_steps_on(executor: str, stage: Stage) -> WorkflowVersion[[], str]:
    """The same workflow version as deployed on `executor`."""

    @task("first")
    async def first() -> str:
        stage.executed.append((executor, "first"))
        stage.first_started.set()
        await stage.first_may_end.wait()
        return "first done"

    @task("second")
    async def second() -> str:
        stage.executed.append((executor, "second"))
        return "second done"

    @workflow("two-steps").v("1.0.0")
    async def two_steps(run: Run) -> str:
        await first.start(run)
        return await second.start(run)

    return two_steps


async def claim_and_release(system: LocalSystem, run_id: str) -> None:
    """Two revisions pass: claimed by somebody, handed back unused."""
    api = system.api()
    claimed = await api.call(ClaimRun(run_id=system.run(run_id).id, claim_id="somebody", executor="somebody"))
    assert isinstance(claimed, Claimed)
    await api.call(ReleaseClaim(run_id=claimed.run.id, token=claimed.token))


async def test_a_zombie_at_revision_5_is_refused_once_the_run_was_recovered_at_6_and_claimed_at_7(table: Table) -> None:
    stage = Stage()
    on_a, on_b = two_steps_on("A", stage), two_steps_on("B", stage)
    clock = FakeClock()
    system = LocalSystem(table, clock=clock, limits=Limits(claim_idle_timeout_ms=90_000))
    run_id = (await on_a.start(system.client())).id
    await claim_and_release(system, run_id)
    await claim_and_release(system, run_id)
    assert system.run(run_id).revision == 4

    # A claims at 5 and is in the middle of its first task.
    api_of_a = system.faulty_api()
    executor_a = system.executor(on_a, api=api_of_a, name="A", config=ExecutorConfig(claim_refresh_interval_ms=30_000))
    segment_a = asyncio.create_task(executor_a.execute(run_id, revision=4))
    await stage.first_started.wait()
    assert (system.run(run_id).revision, system.run(run_id).state.status) == (5, "running")

    # A falls silent: the claim goes stale, and recovery releases the run at 6.
    clock.advance(90_000)
    system.attention.advance(NAMESPACE, run_id)
    recovered = system.run(run_id)
    assert (recovered.revision, recovered.state.model_dump()) == (6, {"status": "queued", "reason": "recovery"})

    # B claims at 7 and is in the middle of the same task.
    stage.first_started.clear()
    segment_b = asyncio.create_task(system.executor(on_b, name="B").execute(run_id, revision=6))
    await stage.first_started.wait()
    running = system.run(run_id)
    assert (running.revision, running.state.status, running.claim and running.claim.executor) == (7, "running", "B")

    # A wakes up: its refresh is refused, its task's result is refused, and it stops cleanly.
    with pytest.raises(RevisionConflict):
        await system.api().call(RefreshClaim(run_id=running.id, token=_token_of(api_of_a.called)))
    stage.first_may_end.set()
    assert await segment_a == SegmentResult("lost")
    assert await segment_b == SegmentResult("completed")

    assert stage.executed == [("A", "first"), ("B", "first"), ("B", "second")]
    refused = [call for call in api_of_a.called if isinstance(call, AppendCheckpoint)][-1]
    assert isinstance(refused.records[0], TaskCompleted)
    transitions = [record for record in system.records(run_id) if isinstance(record, Transition)]
    assert [(record.revision, record.state.status, record.executor) for record in transitions[5:]] == [
        (5, "running", "A"),
        (6, "queued", "A"),
        (7, "running", "B"),
        (8, "completed", "B"),
    ]


def _token_of(called: Sequence[object]) -> str:
    return next(call.token for call in called if isinstance(call, AppendCheckpoint))
