"""Every workload on the memory store."""

import gc
import time

from aiki_push.domain.log_records import Transition
from bench.embedded import EmbeddedSystem, LiveSystem, live_system
from bench.figures import Figure, figure, percentile
from bench.workflows import ALL, fan_out, first_line, go, many_children, sequence, sequence_then_event, sequence_then_wait

ON = "memory"
REPETITIONS = 7
STARTS = 200
WAITS = 50
CHILDREN = 100


async def measure() -> list[Figure]:
    """W1, W3 to W6, what a wait costs, and how replay grows with the log."""
    system = EmbeddedSystem()
    await _sequence(system, 100)  # imports, caches
    figures = [*await w1(system), await w3(system), *await w4(system), *await w6(system), *await parks(system)]
    async with live_system() as live:
        await _event_to_line(live, 0)
        return [*figures, *await resumptions(live), *await w5(live)]


async def _sequence(system: EmbeddedSystem, steps: int) -> tuple[float, float]:
    """Milliseconds, and milliseconds of CPU, that an execution of `steps` tasks takes from its claim to its end."""
    handle = await sequence.start(system.client(), steps)
    gc.collect()
    began, cpu_began = time.perf_counter(), time.process_time()
    result = await system.executor(*ALL).execute(handle.id, revision=0)
    taken, cpu_taken = time.perf_counter() - began, time.process_time() - cpu_began
    assert result.outcome == "completed", result
    return taken * 1e3, cpu_taken * 1e3


async def w1(system: EmbeddedSystem) -> list[Figure]:
    """100 sequential tasks."""
    runs = [await _sequence(system, 100) for _ in range(REPETITIONS)]
    return [
        figure("W1", ON, "ms per step", [taken / 100 for taken, _ in runs]),
        figure("W1", ON, "CPU ms per step", [cpu / 100 for _, cpu in runs]),
    ]


async def w3(system: EmbeddedSystem) -> Figure:
    """`gather` of 100 tasks."""
    taken = []
    for _ in range(REPETITIONS):
        handle = await fan_out.start(system.client(), 100)
        gc.collect()
        began = time.perf_counter()
        result = await system.executor(*ALL).execute(handle.id, revision=0)
        taken.append((time.perf_counter() - began) * 1e3)
        assert result.outcome == "completed", result
    return figure("W3", ON, "ms", taken)


async def w4(system: EmbeddedSystem) -> list[Figure]:
    """Replay of 100, 1 000 and 10 000 recorded steps: claim, replay, finish."""
    return [
        one for steps, repetitions in ((100, 7), (1_000, 7), (10_000, 3)) for one in await _replay(system, steps, repetitions)
    ]


async def _replay(system: EmbeddedSystem, steps: int, repetitions: int) -> list[Figure]:
    taken, cpu_taken = [], []
    for _ in range(repetitions):
        handle = await sequence_then_wait.start(system.client(), steps)
        executor = system.executor(*ALL)
        parked = await executor.execute(handle.id, revision=0)
        assert parked.outcome == "parked", parked
        system.wake(handle.id)
        gc.collect()
        began, cpu_began = time.perf_counter(), time.process_time()
        result = await executor.execute(handle.id, revision=3)
        taken.append((time.perf_counter() - began) * 1e3)
        cpu_taken.append((time.process_time() - cpu_began) * 1e3)
        assert result.outcome == "completed", result
    return [
        figure("W4", ON, f"ms to replay {steps} steps", taken),
        figure("W4", ON, f"CPU ms to replay {steps} steps", cpu_taken),
    ]


async def w6(system: EmbeddedSystem) -> list[Figure]:
    """From the call of `start` to the first line of the handler."""
    executor = system.executor(*ALL)
    taken = []
    for _ in range(STARTS):
        began_ns = time.monotonic_ns()
        handle = await first_line.start(system.client())
        await executor.execute(handle.id, revision=0)
        finished = await handle.wait()
        taken.append((finished.value() - began_ns) / 1e6)
    return [
        figure("W6", ON, "ms, p50", [percentile(taken, 0.5)]),
        figure("W6", ON, "ms, p95", [percentile(taken, 0.95)]),
    ]


async def parks(system: EmbeddedSystem) -> list[Figure]:
    """A segment that only parks on an event: claim, first line, park."""
    executor = system.executor(*ALL)
    taken, cpu_taken = [], []
    for _ in range(WAITS):
        handle = await sequence_then_event.start(system.client(), 0)
        began, cpu_began = time.perf_counter(), time.process_time()
        result = await executor.execute(handle.id, revision=0)
        taken.append((time.perf_counter() - began) * 1e3)
        cpu_taken.append((time.process_time() - cpu_began) * 1e3)
        assert result.outcome == "parked", result
    return [figure("wait", ON, "ms to park", taken), figure("wait", ON, "CPU ms to park", cpu_taken)]


async def resumptions(system: LiveSystem) -> list[Figure]:
    """From the sending of an event to the line after the wait for it: of a run that did nothing before, and of W4's."""
    waits = [await _event_to_line(system, 0) for _ in range(WAITS)]
    w4_waits = [await _event_to_line(system, 1_000) for _ in range(REPETITIONS)]
    return [
        figure("wait", ON, "ms from event to resumed", [taken for taken, _ in waits]),
        figure("wait", ON, "CPU ms from event to resumed", [cpu for _, cpu in waits]),
        figure("W4", ON, "ms from event to resumed after 1000 steps", [taken for taken, _ in w4_waits]),
        figure("W4", ON, "CPU ms from event to resumed after 1000 steps", [cpu for _, cpu in w4_waits]),
    ]


async def _event_to_line(system: LiveSystem, steps: int) -> tuple[float, float]:
    handle = await sequence_then_event.start(system.client(), steps)
    assert await system.outcome(handle.id) == "parked"
    gc.collect()
    began_ns, cpu_began_ns = time.monotonic_ns(), time.process_time_ns()
    await go.send(handle)
    assert await system.outcome(handle.id) == "completed"
    line_ns, cpu_ns = (await handle.wait()).value()
    return (line_ns - began_ns) / 1e6, (cpu_ns - cpu_began_ns) / 1e6


async def w5(system: LiveSystem) -> list[Figure]:
    """A parent with 100 children, from its start to its end."""
    runs = [await _children(system) for _ in range(REPETITIONS)]
    taken, cpu_taken, wakes = zip(*runs, strict=True)
    return [
        figure("W5", ON, "ms", taken),
        figure("W5", ON, "CPU ms", cpu_taken),
        figure("W5", ON, "wake-ups of the parent", wakes),
    ]


async def _children(system: LiveSystem) -> tuple[float, float, float]:
    gc.collect()
    began, cpu_began = time.perf_counter(), time.process_time()
    handle = await many_children.start(system.client(), CHILDREN)
    while (outcome := await system.outcome(handle.id)) == "parked":
        pass
    taken, cpu_taken = time.perf_counter() - began, time.process_time() - cpu_began
    assert outcome == "completed", outcome
    return taken * 1e3, cpu_taken * 1e3, _wake_ups(system, handle.id)


def _wake_ups(system: LiveSystem, run_id: str) -> int:
    """How often the run was taken up again."""
    transitions = [one for one in system.records(run_id) if isinstance(one, Transition)]
    return sum(one.state.status == "running" for one in transitions) - 1
