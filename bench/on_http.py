"""Every workload through the local system: the development server and an endpoint, each a process, over HTTP and by signed push.

Once on moto, and once on the memory store, which shows how much of the first is moto's. Times of a run are those of its history, by
the server's clock: from the claim of a segment to its end.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from aiki_push import Client, Handle
from aiki_push.apps.devserver.local_aws import create_table, local_aws
from aiki_push.apps.devserver.options import StoreName
from aiki_push.domain.log_records import Transition
from aiki_push.ports.api.endpoints import PutEndpoint, WorkflowVersionField
from bench.figures import Figure, figure, percentile
from bench.workflows import ALL, fan_out, first_line, go, many_children, sequence, sequence_then_event, sequence_then_pause
from examples.order_processing.demo_processes import Processes, find_in_log, free_port, is_listening, until
from infra.table import TABLE

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.type_defs import AttributeValueTypeDef

STORES: Mapping[str, StoreName] = {"http": "moto", "http, memory": "memory"}
"""What is measured, by the name that its figures have."""

REPETITIONS = 5
REPLAYED_STEPS = 1_000
REPLAYS = 3
STARTS = 100
WAITS = 20
CHILDREN = 100
PARENTS: Mapping[StoreName, int] = {"moto": 1, "memory": 5}
LIMIT_S = 900


def measure() -> list[Figure]:
    """W1, W3 to W6, what a wait costs, and how long the simulated DynamoDB takes that they wait for."""
    # W5 has a server of its own because moto searches a whole table for every query: the fuller it is, the longer everything takes.
    figures = [one for on, store in STORES.items() for workloads in (_most, w5) for one in _on_new_server(store, workloads, on)]
    return [*figures, *raw("http")]


def _on_new_server(store: StoreName, workloads: Callable[[Client, str], Awaitable[list[Figure]]], on: str) -> list[Figure]:
    async def measured(processes: Processes) -> list[Figure]:
        home = str(processes.folder / "server")
        arguments = ["-m", "aiki_push.apps.cli", "dev", "--port", "0", "--home", home, "--store", store]
        server = processes.start("server", arguments, {"AIKI_LOG_LEVEL": "WARNING"})
        url = find_in_log(server, r"http://127\.0\.0\.1:\d+")
        client = Client(url=url)
        try:
            await _start_endpoint(processes, url, find_in_log(server, r"whpk_\S+"), client)
            await _segment_ms(await sequence.start(client, 10))  # imports, caches, connections
            return await workloads(client, on)
        finally:
            await client.close()

    with (
        TemporaryDirectory(prefix="aiki-push-bench-", ignore_cleanup_errors=True) as folder,
        _processes(Path(folder)) as processes,
    ):
        return asyncio.run(asyncio.wait_for(measured(processes), LIMIT_S))


@contextmanager
def _processes(folder: Path) -> Iterator[Processes]:
    processes = Processes(folder)
    try:
        yield processes
    finally:
        processes.end()


async def _start_endpoint(processes: Processes, url: str, public_key: str, client: Client) -> None:
    port = free_port()
    processes.start("endpoint", ["-m", "bench.http_endpoint", url, public_key, str(port)], {})
    until(lambda: is_listening(port), "the endpoint listening")
    workflows = tuple(WorkflowVersionField(name=one.name, version=one.version) for one in ALL)
    await client.api.call(PutEndpoint(endpoint_id="bench", url=f"http://127.0.0.1:{port}/", workflows=workflows))


async def _most(client: Client, on: str) -> list[Figure]:
    # In this order because the table becomes fuller.
    latencies = await w6(client, on)
    return [*await waits(client, on), await w3(client, on), await w1(client, on), *await w4(client, on), *latencies]


async def _transitions(handle: Handle[Any]) -> list[Transition]:
    return [entry.record async for entry in handle.history() if isinstance(entry.record, Transition)]


async def _segment_ms(handle: Handle[Any]) -> float:
    """Milliseconds of the run's last segment, once it has ended."""
    (await handle.wait()).value()
    transitions = await _transitions(handle)
    claimed_at = [record.at for record in transitions if record.state.status == "running"]
    return transitions[-1].at - claimed_at[-1]


async def w1(client: Client, on: str) -> Figure:
    """100 sequential tasks."""
    taken = [await _segment_ms(await sequence.start(client, 100)) for _ in range(REPETITIONS)]
    return figure("W1", on, "ms per step", [one / 100 for one in taken])


async def w3(client: Client, on: str) -> Figure:
    """`gather` of 100 tasks."""
    return figure("W3", on, "ms", [await _segment_ms(await fan_out.start(client, 100)) for _ in range(REPETITIONS)])


async def w4(client: Client, on: str) -> list[Figure]:
    """Replay of 1 000 recorded steps: claim, replay, finish. And the same after a wait for an event, from its sending on."""
    taken = [await _segment_ms(await sequence_then_pause.start(client, REPLAYED_STEPS)) for _ in range(REPLAYS)]
    resumed = [await _event_to_line(client, REPLAYED_STEPS) for _ in range(REPLAYS)]
    return [
        figure("W4", on, f"ms to replay {REPLAYED_STEPS} steps", taken),
        figure("W4", on, f"ms from event to resumed after {REPLAYED_STEPS} steps", [taken for taken, _ in resumed]),
    ]


async def waits(client: Client, on: str) -> list[Figure]:
    """A segment that only parks on an event; and from the sending of that event to the line after the wait."""
    resumed = [await _event_to_line(client, 0) for _ in range(WAITS)]
    return [
        figure("wait", on, "ms to park", [parked for _, parked in resumed]),
        figure("wait", on, "ms from event to resumed", [taken for taken, _ in resumed]),
    ]


async def _event_to_line(client: Client, steps: int) -> tuple[float, float]:
    """Milliseconds from the event to the line after its wait, and those of the segment before."""
    handle = await sequence_then_event.start(client, steps)
    while (await handle.refresh()).state.status != "awaiting_event":
        await asyncio.sleep(0.02)
    began_ns = time.monotonic_ns()
    await go.send(handle)
    line_ns, _ = (await handle.wait()).value()
    claimed, parked = (await _transitions(handle))[1:3]
    return (line_ns - began_ns) / 1e6, parked.at - claimed.at


async def w5(client: Client, on: str) -> list[Figure]:
    """A parent with 100 children, from its start to its end."""
    taken, wakes = [], []
    for _ in range(PARENTS[STORES[on]]):
        handle = await many_children.start(client, CHILDREN)
        (await handle.wait()).value()
        transitions = await _transitions(handle)
        taken.append(float(transitions[-1].at - transitions[0].at))
        wakes.append(sum(record.state.status == "running" for record in transitions) - 1)
    return [figure("W5", on, "ms", taken), figure("W5", on, "wake-ups of the parent", wakes)]


async def w6(client: Client, on: str) -> list[Figure]:
    """From the call of `start` to the first line of the handler, which a push has led to."""
    taken = []
    for _ in range(STARTS):
        began_ns = time.monotonic_ns()
        finished = await (await first_line.start(client)).wait()
        taken.append((finished.value() - began_ns) / 1e6)
    return [
        figure("W6", on, "ms, p50", [percentile(taken, 0.5)]),
        figure("W6", on, "ms, p95", [percentile(taken, 0.95)]),
    ]


def raw(on: str) -> list[Figure]:
    """What the simulated DynamoDB alone takes for the write of a step, and for reading all of them."""
    puts, queries = [], []
    with local_aws() as dynamodb:
        create_table(dynamodb, "raw", TABLE)
        for number in range(REPLAYED_STEPS):
            item: Mapping[str, AttributeValueTypeDef] = {"PK": {"S": "run"}, "SK": {"S": f"{number:08}"}, "d": {"S": "x" * 300}}
            began = time.perf_counter()
            dynamodb.put_item(TableName="raw", Item=item, ConditionExpression="attribute_not_exists(PK)")
            puts.append((time.perf_counter() - began) * 1e3)
        for _ in range(REPLAYS):
            began = time.perf_counter()
            dynamodb.query(TableName="raw", KeyConditionExpression="PK = :run", ExpressionAttributeValues={":run": {"S": "run"}})
            queries.append((time.perf_counter() - began) * 1e3)
    return [
        figure("raw", on, "ms for a conditional put on moto", puts),
        figure("raw", on, f"ms for a query of {REPLAYED_STEPS} items on moto", queries),
    ]
