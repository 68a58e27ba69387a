"""Runs that wait use nothing but the table, however many there are."""

import asyncio
import threading

from aiki_push import Run, event, workflow
from aiki_push.testing import Harness

go = event("go", int)

RUNS = 2_000


def test_two_thousand_parked_runs_use_no_process_and_all_go_on_when_they_are_woken() -> None:
    @workflow("waiting").v("1")
    async def waiting(run: Run) -> int:
        return (await go.wait(run)).data

    with Harness(waiting) as harness:

        async def scenario() -> tuple[int, int]:
            handles = [await waiting.start(harness.client) for _ in range(RUNS)]
            await harness.settle()
            assert {harness.header(handle.id).state.status for handle in handles} == {"awaiting_event"}
            names = {task.get_name() for task in asyncio.all_tasks()}
            assert not any("execution" in name or "claim" in name for name in names)
            assert not any(thread.name.startswith("claim of") for thread in threading.enumerate())
            began_at = harness.now
            for number, handle in enumerate(handles):
                assert await go.send(handle, number)
                await asyncio.sleep(1 / RUNS)
            assert [(await handle.wait()).value() for handle in handles] == list(range(RUNS))
            assert harness.now - began_at <= 2_000
            resumptions = sum(harness.segments(handle.id) - 1 for handle in handles)
            return resumptions, RUNS

        resumptions, runs = harness.run(scenario())
        print(f"{runs} runs were resumed {resumptions} times")
        assert resumptions == runs
