"""Every workload through the local system: the development server on moto and an endpoint, each a process, over HTTP and by signed push.

Times of a run are those of its history, by the server's clock: from the claim of a segment to its end.
"""

import asyncio
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from aiki_push import Client, Handle
from aiki_push.apps.devserver.local_aws import create_table, local_aws
from aiki_push.domain.log_records import Transition
from aiki_push.ports.api.endpoints import PutEndpoint, WorkflowVersionField
from bench.figures import Figure, figure, percentile
from bench.workflows import ALL, fan_out, first_line, sequence, sequence_then_pause
from examples.order_processing.demo_processes import Processes, find_in_log, free_port, is_listening, until
from infra.table import TABLE

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.type_defs import AttributeValueTypeDef

ON = "http"
REPETITIONS = 5
REPLAYED_STEPS = 1_000
REPLAYS = 3
STARTS = 100
LIMIT_S = 600


def measure() -> list[Figure]:
    """W1, W3, W4 (replay) and W6, and how long the simulated DynamoDB takes that they wait for."""
    with (
        TemporaryDirectory(prefix="aiki-push-bench-", ignore_cleanup_errors=True) as folder,
        _processes(Path(folder)) as processes,
    ):
        figures = asyncio.run(asyncio.wait_for(_measure(processes), LIMIT_S))
    return [*figures, *raw()]


@contextmanager
def _processes(folder: Path) -> Iterator[Processes]:
    processes = Processes(folder)
    try:
        yield processes
    finally:
        processes.end()


async def _measure(processes: Processes) -> list[Figure]:
    home = str(processes.folder / "server")
    quiet = {"AIKI_LOG_LEVEL": "WARNING"}
    server = processes.start("server", ["-m", "aiki_push.apps.cli", "dev", "--port", "0", "--home", home], quiet)
    url = find_in_log(server, r"http://127\.0\.0\.1:\d+")
    client = Client(url=url)
    try:
        await _start_endpoint(processes, url, find_in_log(server, r"whpk_\S+"), client)
        await _segment_ms(await sequence.start(client, 10))  # imports, caches, connections
        # In this order because moto searches a whole table for every query: the fuller it is, the longer everything takes.
        latencies = await w6(client)
        return [await w3(client), await w1(client), await w4(client), *latencies]
    finally:
        await client.close()


async def _start_endpoint(processes: Processes, url: str, public_key: str, client: Client) -> None:
    port = free_port()
    processes.start("endpoint", ["-m", "bench.http_endpoint", url, public_key, str(port)], {})
    until(lambda: is_listening(port), "the endpoint listening")
    workflows = tuple(WorkflowVersionField(name=one.name, version=one.version) for one in ALL)
    await client.api.call(PutEndpoint(endpoint_id="bench", url=f"http://127.0.0.1:{port}/", workflows=workflows))


async def _segment_ms(handle: Handle[int]) -> float:
    """Milliseconds of the run's last segment, once it has ended."""
    (await handle.wait()).value()
    transitions = [entry.record async for entry in handle.history() if isinstance(entry.record, Transition)]
    claimed_at = [record.at for record in transitions if record.state.status == "running"]
    return transitions[-1].at - claimed_at[-1]


async def w1(client: Client) -> Figure:
    """100 sequential tasks."""
    taken = [await _segment_ms(await sequence.start(client, 100)) for _ in range(REPETITIONS)]
    return figure("W1", ON, "ms per step", [one / 100 for one in taken])


async def w3(client: Client) -> Figure:
    """`gather` of 100 tasks."""
    return figure("W3", ON, "ms", [await _segment_ms(await fan_out.start(client, 100)) for _ in range(REPETITIONS)])


async def w4(client: Client) -> Figure:
    """Replay of 1 000 recorded steps: claim, replay, finish."""
    taken = [await _segment_ms(await sequence_then_pause.start(client, REPLAYED_STEPS)) for _ in range(REPLAYS)]
    return figure("W4", ON, f"ms to replay {REPLAYED_STEPS} steps", taken)


async def w6(client: Client) -> list[Figure]:
    """From the call of `start` to the first line of the handler, which a push has led to."""
    taken = []
    for _ in range(STARTS):
        began_ns = time.monotonic_ns()
        finished = await (await first_line.start(client)).wait()
        taken.append((finished.value() - began_ns) / 1e6)
    return [
        figure("W6", ON, "ms, p50", [percentile(taken, 0.5)]),
        figure("W6", ON, "ms, p95", [percentile(taken, 0.95)]),
    ]


def raw() -> list[Figure]:
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
        figure("raw", ON, "ms for a conditional put on moto", puts),
        figure("raw", ON, f"ms for a query of {REPLAYED_STEPS} items on moto", queries),
    ]
