"""The workflows that are measured. Their tasks do nothing, so that what is left is the framework."""

import asyncio
import time

from aiki_push import Run, event, task, workflow

HOUR_S = 3600
PAUSE_S = 0.05

go = event("go")


@task("no-op")
async def no_op(number: int) -> int:
    """Nothing."""
    return number


@workflow("sequence").v("1")
async def sequence(run: Run, steps: int) -> int:
    """`steps` tasks, one after the other."""
    total = 0
    for number in range(steps):
        total += await no_op.start(run, number)
    return total


@workflow("fan-out").v("1")
async def fan_out(run: Run, width: int) -> int:
    """`width` tasks side by side."""
    return sum(await asyncio.gather(*(no_op.start(run, number) for number in range(width))))


@workflow("sequence-then-wait").v("1")
async def sequence_then_wait(run: Run, steps: int) -> int:
    """`steps` tasks, then an hour of waiting: what comes after it replays them all."""
    total = 0
    for number in range(steps):
        total += await no_op.start(run, number)
    await asyncio.sleep(HOUR_S)
    return total


@workflow("sequence-then-pause").v("1")
async def sequence_then_pause(run: Run, steps: int) -> int:
    """As `sequence-then-wait`, for a system whose clock cannot be moved."""
    total = 0
    for number in range(steps):
        total += await no_op.start(run, number)
    await asyncio.sleep(PAUSE_S)
    return total


@workflow("first-line").v("1")
async def first_line(run: Run) -> int:
    """When the first line of the handler ran: nanoseconds of CLOCK_MONOTONIC, which all processes of a machine share."""
    return time.monotonic_ns() if run.id else 0


@workflow("sequence-then-event").v("1")
async def sequence_then_event(run: Run, steps: int) -> list[int]:
    """`steps` tasks, then a wait for an event: when the line after it ran, and what this process had used of the CPU (both ns)."""
    for number in range(steps):
        await no_op.start(run, number)
    await go.wait(run)
    return [time.monotonic_ns(), time.process_time_ns()]


@workflow("child").v("1")
async def child(run: Run, number: int) -> int:
    """Nothing."""
    return number if run.id else 0


@workflow("many-children").v("1")
async def many_children(run: Run, number: int) -> int:
    """`number` children side by side."""
    children = await asyncio.gather(*(child.start_as_child(run, one) for one in range(number)))
    return sum(finished.value() for finished in await asyncio.gather(*(one.wait() for one in children)))


ALL = (sequence, fan_out, sequence_then_wait, sequence_then_pause, sequence_then_event, first_line, child, many_children)
