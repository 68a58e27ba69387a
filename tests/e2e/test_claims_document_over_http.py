"""The sequence of the claims document, revision by revision, between processes."""

import httpx
import pytest

from aiki_push.ports.api.claims import Claimed, ClaimRun, ReleaseClaim
from tests.e2e.line import line_to
from tests.e2e.processes import Processes, until
from tests.e2e.stage import Stage
from tests.e2e.system import System, system_in
from tests.e2e.workflows import three_steps

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]

REFRESH, CHECKPOINT = "/claim/refresh", "/checkpoints"


async def claim_and_release(system: System, run_id: str, claim_id: str) -> None:
    """Two revisions pass: claimed by somebody, handed back unused."""
    api, run = system.client.api, await system.run(run_id)
    claimed = await api.call(ClaimRun(run_id=run.id, claim_id=claim_id, executor="somebody"))
    assert isinstance(claimed, Claimed)
    await api.call(ReleaseClaim(run_id=run.id, token=claimed.token))


@pytest.mark.parametrize("store", ["memory", "moto"])
async def test_a_claim_of_revision_5_is_worth_nothing_once_the_run_was_recovered_at_6_and_claimed_at_7(
    processes: Processes, stage: Stage, store: str
) -> None:
    async with system_in(processes, store=store) as system:
        with line_to(system.server.url) as line_of_a:
            await tell_the_story(system, stage, line_of_a)


async def tell_the_story(system: System, stage: Stage, line_of_a: Line) -> None:
    run_id = (await three_steps.start(system.client)).id
    await claim_and_release(system, run_id, "somebody-1")
    await claim_and_release(system, run_id, "somebody-2")

    # A claims at 5 and is in the middle of its first task.
    stage.close_gate("A", "first")
    a = system.start_endpoint("A", server_url=line_of_a.url)
    await system.register(a)
    until(lambda: stage.has(run_id, "A", "first", "began"), "A in its first task")
    assert await revision_status_and_executor(system, run_id) == (5, "running", "A")

    # Its refreshes get lost: the claim goes stale, and the server releases the run at 6.
    await system.deregister(a)
    line_of_a.is_dropped = lambda path: path.endswith(REFRESH)
    ...
