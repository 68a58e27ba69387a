"""The server cannot be reached for a while."""

import pytest

from aiki_push.domain.values import DurationMs
from tests.e2e.line import line_to
from tests.e2e.processes import CLOCK, Processes, until
from tests.e2e.stage import Stage
from tests.e2e.system import attempts, end_of, system_in, transitions
from tests.e2e.workflows import three_steps

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]

OUTAGE_MS = DurationMs(5_000)
IDLE_TIMEOUT_MS = 60_000
"""Far beyond the outage: whatever goes wrong, it is not that the claim went stale."""

BY_A = [("A", task, what) for task in ("first", "second", "third") for what in ("began", "ended")]


async def test_a_server_that_is_down_for_five_seconds_delays_the_runs_in_progress_and_uses_up_no_attempt(
    processes: Processes, stage: Stage
) -> None:
    async with system_in(processes, idle_timeout_ms=IDLE_TIMEOUT_MS) as system:
        with line_to(system.server.url) as line:
            stage.close_gate("A", "second")
            a = system.start_endpoint("A", server_url=line.url)
            await system.register(a)
            handle = await three_steps.start(system.client)
            until(lambda: stage.has(handle.id, "A", "second", "began"), "A in its second task")

            line.go_down()
            stage.open_gate("A", "second")
            until(lambda: stage.has(handle.id, "A", "second", "ended"), "the second task's end")
            # One more is pushed, which A cannot claim yet.
            other = await three_steps.start(system.client)
            CLOCK.sleep(OUTAGE_MS)
            assert await system.standing(handle.id) == (1, "running", "A")
            assert stage.effects(handle.id) == BY_A[:4]
            assert stage.effects(other.id) == []
            line.come_up()

            for one in (handle, other):
                assert (await end_of(one)).value() == ["first by A", "second by A", "third by A"]
                assert await transitions(one) == [(0, "queued", None), (1, "running", "A"), (2, "completed", "A")]
                assert await attempts(one) == [("first", 1), ("second", 1), ("third", 1)]
                assert stage.effects(one.id) == BY_A
