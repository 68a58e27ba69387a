"""Replays see the same order, whatever seeds Python's hashes and wherever objects lie in memory."""

import os
import subprocess
import sys

import pytest

PROGRAM = """
import asyncio, random, sys
from aiki_push import Run, task
from tests.integration.executions import execute, output_of, version_of
from tests.integration.crashes import execute_until_power_cut, recover
from aiki_push.testing import FakeClock
from tests.local_system import LocalSystem

junk = [bytearray(random.Random(int(sys.argv[1])).randrange(1, 4000)) for _ in range(int(sys.argv[1]) * 997)]

@task("step")
async def step(name: str) -> str:
    for _ in range(sum(map(ord, name)) % 7):  # ends in an order of its own
        await asyncio.sleep(0)
    return name

async def body(run: Run) -> list[str]:
    seen: list[str] = []

    async def branch(name: str) -> str:
        for number in range(3):
            seen.append(await step.start(run, f"{name}{number}"))
        return name

    await asyncio.gather(*(branch(name) for name in "abc"))
    async with asyncio.TaskGroup() as group:
        for name in "def":
            group.create_task(branch(name))
    pending = {asyncio.create_task(branch(name)) for name in "ghi"}
    while pending:
        done, pending = await asyncio.wait(pending, return_when=asyncio.FIRST_COMPLETED)
        seen += [task.result() for task in done]
    for ended in asyncio.as_completed([asyncio.create_task(branch(name)) for name in "jkl"]):
        seen.append(await ended)
    return seen

async def main() -> None:
    clock = FakeClock()
    system = LocalSystem(clock=clock)
    version = version_of(body)
    run_id = (await version.start(system.client())).id
    for after in (3, 2, 3, 4):
        if await execute_until_power_cut(system, version, run_id, after=after):
            recover(system, clock, run_id)
    await system.executor(version).execute(run_id, revision=None)
    print(await output_of(system, run_id))

asyncio.run(main())
"""


@pytest.mark.timeout(180)
def test_branches_end_in_the_same_order_with_every_hash_seed_and_memory_layout() -> None:
    orders = set()
    for seed in (0, 1, 2, 3):
        environment = {**os.environ, "PYTHONHASHSEED": str(seed), "PYTHONPATH": os.getcwd()}
        ended = subprocess.run(
            [sys.executable, "-c", PROGRAM, str(seed)], env=environment, capture_output=True, text=True, timeout=60, check=False
        )
        assert ended.returncode == 0, ended.stderr
        orders.add(ended.stdout)
    assert len(orders) == 1
    assert len(orders.pop().split(",")) == 42
