"""A run that is longer than the Lambda invocations that execute it."""

import pytest

from tests.e2e.processes import Processes
from tests.e2e.stage import Stage
from tests.e2e.system import attempts, end_of, system_in
from tests.e2e.waiting import long_haul

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]

STINTS = 7
"""More than fit into one invocation: each takes a second, and is not begun where less than a second and a half is left."""


async def test_a_run_that_is_longer_than_an_invocation_hands_itself_back_in_time_and_goes_on_in_the_next_one(
    processes: Processes, stage: Stage
) -> None:
    async with system_in(processes, idle_timeout_ms=600_000) as system:
        function = system.start_endpoint("A", module="tests.e2e.lambda_process")
        await system.register(function)
        handle = await long_haul.start(system.client, STINTS)

        assert (await end_of(handle)).value() == [*range(STINTS)]
        assert function.process.is_running
        assert await attempts(handle) == [("stint", 1)] * STINTS
        assert stage.effects(handle.id) == [("A", "stint", what) for _ in range(STINTS) for what in ("began", "ended")]
        story = await system.story(handle.id)
        assert story == ["queued: new", *["running", "queued: yield"] * story.count("queued: yield"), "running", "completed"]
        assert "queued: yield" in story
