"""The sequence of the claims document, revision by revision, between processes."""

import httpx
import pytest

from aiki_push.domain.values import RunId
from aiki_push.ports.api.claims import Claimed, ClaimRun, ReleaseClaim
from tests.e2e.line import Line, line_to
from tests.e2e.processes import Processes, until
from tests.e2e.stage import Stage
from tests.e2e.system import System, end_of, system_in, transitions
from tests.e2e.workflows import three_steps

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]

REFRESH, CHECKPOINT = "/claim/refresh", "/checkpoints"


async def claim_and_release(system: System, run_id: RunId, claim_id: str) -> None:
    """Two revisions pass: claimed by somebody, handed back unused."""
    claimed = await system.client.api.call(ClaimRun(run_id=run_id, claim_id=claim_id, executor="somebody"))
    assert isinstance(claimed, Claimed)
    await system.client.api.call(ReleaseClaim(run_id=run_id, token=claimed.token))


@pytest.mark.parametrize("store", ["memory", "moto"])
async def test_a_claim_of_revision_5_is_worth_nothing_once_the_run_was_recovered_at_6_and_claimed_at_7(
    processes: Processes, stage: Stage, store: str
) -> None:
    async with system_in(processes, store=store) as system:
        with line_to(system.server.url) as line_of_a:
            await play(system, stage, line_of_a)


async def play(system: System, stage: Stage, line_of_a: Line) -> None:
    handle = await three_steps.start(system.client)
    run_id = handle.id
    await claim_and_release(system, run_id, "somebody-1")
    await claim_and_release(system, run_id, "somebody-2")

    # A claims at 5 and is in the middle of its first task.
    stage.close_gate("A", "first")
    a = system.start_endpoint("A", server_url=line_of_a.url)
    await system.register(a)
    until(lambda: stage.has(run_id, "A", "first", "began"), "A in its first task")
    assert await system.standing(run_id) == (5, "running", "A")
    until(lambda: [one for one in line_of_a.exchanges if one.path.endswith(REFRESH)], "A refreshing its claim")

    # Its refreshes get lost: the claim goes stale, and the server releases the run at 6.
    await system.deregister(a)
    line_of_a.is_dropped = lambda path: path.endswith(REFRESH)
    await system.until_revision(run_id, 6)
    assert await system.standing(run_id) == (6, "queued", None)

    # B claims at 7 and is in the middle of the same task.
    stage.close_gate("B", "first")
    b = system.start_endpoint("B")
    await system.register(b)
    until(lambda: stage.has(run_id, "B", "first", "began"), "B in its first task")
    assert await system.standing(run_id) == (7, "running", "B")

    # A reports its task's result with its claim of 5, and is refused; its last refresh would be too.
    assert line_of_a.refusals("") == []
    stage.open_gate("A", "first")
    until(lambda: line_of_a.refusals(CHECKPOINT), "A's checkpoint refused")
    assert [one.code for one in line_of_a.refusals("")] == ["revision_conflict"]
    refresh = next(one for one in reversed(line_of_a.exchanges) if one.path.endswith(REFRESH))
    refused = httpx.post(system.server.url + refresh.path, content=refresh.body, headers={"content-type": "application/json"})
    assert (refused.status_code, refused.json()["code"]) == (409, "revision_conflict")
    assert (refused.json()["expected_revision"], refused.json()["revision"]) == (5, 7)

    # A is alive and healthy, and executes another run.
    line_of_a.is_dropped = lambda _: False
    await system.deregister(b)
    await system.register(a)
    other = await three_steps.start(system.client)
    assert (await end_of(other)).value() == ["first by A", "second by A", "third by A"]
    assert a.process.is_running

    # B finishes what it owns.
    stage.open_gate("B", "first")
    assert (await end_of(handle)).value() == ["first by B", "second by B", "third by B"]
    assert (await transitions(handle))[4:] == [
        (4, "queued", None),
        (5, "running", "A"),
        (6, "queued", "A"),
        (7, "running", "B"),
        (8, "completed", "B"),
    ]
    assert [effect for effect in stage.effects(run_id) if effect[0] == "A"] == [("A", "first", "began"), ("A", "first", "ended")]
    assert len(line_of_a.refusals(CHECKPOINT)) == 1
    # A refresh that was on its way, and repeated while the line dropped it, may still arrive: it is refused too.
    assert {one.code for one in line_of_a.refusals("")} == {"revision_conflict"}
