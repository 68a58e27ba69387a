"""A task that gives nothing else in its process a chance."""

import pytest

from tests.e2e.processes import Processes
from tests.e2e.stage import Stage
from tests.e2e.system import attempts, end_of, system_in, transitions
from tests.e2e.workflows import spins

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]

IDLE_TIMEOUT_MS, REFRESH_MS, SPIN_MS = 3_000, 1_000, 5_000


async def test_a_task_that_spins_for_longer_than_the_idle_timeout_keeps_its_claim(processes: Processes, stage: Stage) -> None:
    async with system_in(processes, idle_timeout_ms=IDLE_TIMEOUT_MS) as system:
        a, b = (system.start_endpoint(name, refresh_ms=REFRESH_MS) for name in ("A", "B"))
        await system.register(a)
        handle = await spins.start(system.client, SPIN_MS)
        await system.until_revision(handle.id, 1)
        # B would take the run if it were taken from A.
        await system.register(b)

        assert (await end_of(handle)).value() == "spun"
        assert await transitions(handle) == [(0, "queued", None), (1, "running", "A"), (2, "completed", "A")]
        assert await attempts(handle) == [("spin-on-the-loop", 1), ("spin-in-a-thread", 1)]
    assert stage.effects(handle.id) == [
        ("A", task, what) for task in ("spin-on-the-loop", "spin-in-a-thread") for what in ("began", "ended")
    ]
