import asyncio
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from aiki_push.domain.errors import NotDurable
from aiki_push.sdk.replay.loop import WorkflowLoop
from tests.unit.sdk.replay.begun_workflows import begun

PROGRAM = """
import sys
junk = [bytearray(int(sys.argv[1]) * (n % 7 + 1)) for n in range(int(sys.argv[2]))]
del junk[:: int(sys.argv[3])]
if sys.argv[4] == "python":
    sys.modules["_asyncio"] = None
import asyncio
from aiki_push.sdk.replay.loop import WorkflowLoop

lines = []

async def branch(name, future):
    try:
        lines.append((name, await future))
    except asyncio.CancelledError:
        lines.append((name, "cancelled"))
        raise
    return name

def futures(n):
    made = [asyncio.get_running_loop().create_future() for _ in range(n)]
    waiting.extend(made)
    return made

async def wait_for_many():
    pending = {asyncio.create_task(branch(f"wait {n}", future)) for n, future in enumerate(futures(40))}
    while pending:
        done, pending = await asyncio.wait(pending, return_when=asyncio.FIRST_COMPLETED)
        lines.append(("done", [task.result() for task in done], len(pending)))

async def wait_for_bare_futures():
    made = futures(40)
    done, _ = await asyncio.wait(made)
    lines.append(("bare", [made.index(future) for future in done]))

async def complete():
    tasks = [asyncio.create_task(branch(f"complete {n}", future)) for n, future in enumerate(futures(40))]
    await asyncio.wait(tasks)
    for completed in asyncio.as_completed(tasks):
        lines.append(("completed", await completed))

async def fail_in_a_group():
    async def fail(future):
        await future
        raise ValueError
    try:
        async with asyncio.TaskGroup() as group:
            for n, future in enumerate(futures(40)):
                group.create_task(branch(f"group {n}", future) if n else fail(future))
    except* ValueError:
        lines.append("group failed")

async def workflow():
    await asyncio.gather(wait_for_many(), wait_for_bare_futures(), complete(), fail_in_a_group())
    lines.append("end")

waiting = []
loop = WorkflowLoop()
task = loop.start(workflow())
loop.run_until_idle()
step = 0
while any(not future.done() for future in waiting):
    left = [future for future in waiting if not future.done()]
    for n in {step * 7919 % len(left), step * 104729 % len(left)}:
        left[n].set_result(n)
    step += 1
    loop.run_until_idle()
task.result()
print(*lines, sep="\\n")
"""


def output_of(*arguments: str, **environment: str) -> str:
    command = [sys.executable, "-W", "error", "-c", PROGRAM, *arguments]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[4]), **environment}
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=True, timeout=60).stdout


def test_everything_happens_in_the_same_order_whatever_the_hash_seed_and_the_memory_layout() -> None:
    outputs = [
        output_of("16", "1", "1", "c", PYTHONHASHSEED="0"),
        output_of("100", "5000", "3", "c", PYTHONHASHSEED="1"),
        output_of("7", "20011", "2", "c", PYTHONHASHSEED="random"),
        output_of("513", "999", "5", "c", PYTHONHASHSEED="42", PYTHONASYNCIODEBUG="1", PYTHONDEVMODE="1"),
        output_of("64", "3000", "4", "python", PYTHONHASHSEED="7"),
    ]
    lines = outputs[0].splitlines()
    assert lines[-1] == "end"
    assert sum("cancelled" in line for line in lines) > 10
    assert sum("completed" in line for line in lines) == 40
    assert set(outputs) == {outputs[0]}


def test_tasks_and_futures_hash_by_creation_and_equal_only_themselves() -> None:
    async def nothing() -> None:
        pass

    async def workflow() -> list[Any]:
        loop = asyncio.get_running_loop()
        return [loop.create_future(), asyncio.create_task(nothing()), loop.create_future(), asyncio.ensure_future(nothing())]

    (_, first), (_, second) = begun(workflow()), begun(workflow())
    hashes = [hash(made) for made in first.result()]
    assert hashes == [hash(made) for made in second.result()]
    assert len(set(hashes)) == 4
    assert hashes == sorted(hashes)
    assert all(a != b for a, b in zip(first.result(), second.result(), strict=True))


async def answer() -> int:
    return 1


async def complete_coroutines() -> None:
    for completed in asyncio.as_completed([answer()]):
        await completed


async def complete_awaitables() -> None:
    class Awaitable:
        def __await__(self) -> Any:
            return answer().__await__()

    for completed in asyncio.as_completed({Awaitable()}):
        await completed


async def wait_for_gathered() -> None:
    await asyncio.wait([asyncio.gather(asyncio.create_task(answer()))])


async def wait_for_bare_future() -> None:
    await asyncio.wait([asyncio.Future()])


@pytest.mark.parametrize(
    ("workflow", "what"),
    [
        (complete_coroutines, "asyncio.as_completed() on coroutines"),
        (complete_awaitables, "asyncio.as_completed() on coroutines"),
        (wait_for_gathered, "asyncio.wait() on the result of gather() or on a bare Future"),
        (wait_for_bare_future, "asyncio.wait() on the result of gather() or on a bare Future"),
    ],
)
def test_what_has_the_order_of_memory_addresses_is_refused(workflow: Any, what: str) -> None:
    loop, task = begun(workflow())
    with pytest.raises(NotDurable) as refused:
        task.result()
    assert loop.violation is refused.value
    assert str(refused.value).startswith(f"{what} was used in a workflow (test_workflow_loop_order.py:")
    assert str(refused.value).endswith("pass tasks made by asyncio.create_task().")
    loop.drop()


def test_as_completed_takes_tasks_also_when_they_are_made_in_its_argument() -> None:
    async def workflow() -> list[int]:
        return [await task for task in asyncio.as_completed(map(lambda _: asyncio.create_task(answer()), range(3)))]

    loop, task = begun(workflow())
    assert (task.result(), loop.violation) == ([1, 1, 1], None)


def test_branches_begin_in_creation_order_also_when_asked_to_begin_eagerly() -> None:
    begun_branches = []

    async def branch(name: str) -> None:
        begun_branches.append(name)

    async def workflow() -> None:
        tasks = [asyncio.create_task(branch("first")), loop.create_task(branch("eager"), eager_start=True)]
        begun_branches.append("created")
        await asyncio.gather(*tasks)

    loop = WorkflowLoop()
    loop.start(workflow())
    loop.run_until_idle()
    assert begun_branches == ["created", "first", "eager"]
