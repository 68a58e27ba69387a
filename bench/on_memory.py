"""Every workload on the memory store."""

import gc
import time

from bench.embedded import EmbeddedSystem
from bench.figures import Figure, figure, percentile
from bench.workflows import ALL, fan_out, first_line, sequence, sequence_then_wait

ON = "memory"
REPETITIONS = 7
STARTS = 200


async def measure() -> list[Figure]:
    """W1, W3, W4 (replay) and W6, and how replay grows with the log."""
    system = EmbeddedSystem()
    await _sequence(system, 100)  # imports, caches
    return [*await w1(system), await w3(system), *await w4(system), *await w6(system)]


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
