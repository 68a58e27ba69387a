"""Runs that wait for children, on every engine: how often they are woken, how soon, and what that takes."""

import asyncio
from collections import Counter
from collections.abc import Callable
from datetime import timedelta
from typing import TYPE_CHECKING, Any, cast

from botocore.exceptions import ClientError

from aiki_push import Run, task, workflow
from aiki_push.adapters.storage.dynamodb.table import DynamoDbTable
from aiki_push.adapters.storage.table import Table
from aiki_push.domain.log_records import CallEnded, Transition
from aiki_push.domain.run_states import Queued
from aiki_push.domain.values import TimestampMs
from aiki_push.testing import Harness

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

CHILDREN = 100
ENDS_WITHIN_MS = 2_000
CONFLICT_EVERY = 5
HOUR = timedelta(hours=1)


class BusyClient:
    """A client of DynamoDB that counts its requests. Every fifth transaction meets another one, which moto's never do."""

    def __init__(self, client: "DynamoDBClient") -> None:
        self._client = client
        self.requests: Counter[str] = Counter()
        self.conflicts = 0

    def __getattr__(self, name: str) -> Callable[..., object]:
        def request(**parameters: Any) -> object:
            self.requests[name] += 1
            if name == "transact_write_items" and self.requests[name] % CONFLICT_EVERY == 0:
                self.conflicts += 1
                raise conflict(items=len(parameters["TransactItems"]))
            answer: object = getattr(self._client, name)(**parameters)
            return answer

        return request


def conflict(items: int) -> ClientError:
    reasons = [{"Code": "TransactionConflict"}, *[{"Code": "None"}] * (items - 1)]
    response = {
        "Error": {"Code": "TransactionCanceledException", "Message": "cancelled"},
        "ResponseMetadata": {"HTTPStatusCode": 400},
        "CancellationReasons": reasons,
    }
    return ClientError(cast("Any", response), "TransactWriteItems")


@task("work")
async def work(length_ms: int) -> None:
    await asyncio.sleep(length_ms / 1_000)


@workflow("busy").v("1")
async def busy(run: Run, length_ms: int) -> int:
    await work.start(run, length_ms)
    return length_ms


@workflow("sleepy").v("1")
async def sleepy(run: Run, hours: int) -> int:
    await run.sleep("nap", hours * HOUR)
    return hours


def transitions(harness: Harness, run_id: str) -> list[Transition]:
    return [record for record in harness.records(run_id) if isinstance(record, Transition)]


def children_of(harness: Harness, run_id: str) -> list[str]:
    return [record.run_id for record in harness.records(run_id) if isinstance(record, CallEnded)]


def woken_at(harness: Harness, run_id: str) -> list[TimestampMs]:
    """When the run was queued again after it had parked."""
    queued = [one for one in transitions(harness, run_id) if one.state == Queued(reason="child_workflow")]
    return [one.at for one in queued]


# Ten seconds of CPU, nearly all of it moto's.
def test_a_hundred_children_wake_their_parent_ten_times_at_most_and_no_conflict_reaches_it(
    dynamodb: "DynamoDBClient", table_name: str
) -> None:
    errors: list[Exception] = []

    @workflow("parent").v("1")
    async def parent(run: Run) -> int:
        lengths_ms = [number * ENDS_WITHIN_MS // CHILDREN for number in range(CHILDREN)]
        try:
            children = await asyncio.gather(*(busy.start_as_child(run, length_ms) for length_ms in lengths_ms))
            return sum(finished.value() for finished in await asyncio.gather(*(child.wait() for child in children)))
        except Exception as error:
            errors.append(error)
            raise

    client = BusyClient(dynamodb)
    with Harness(parent, busy, table=DynamoDbTable(cast("DynamoDBClient", client), table_name)) as harness:

        async def scenario() -> str:
            handle = await parent.start(harness.client)
            assert (await handle.wait()).value() == sum(range(0, ENDS_WITHIN_MS, ENDS_WITHIN_MS // CHILDREN))
            return handle.id

        run_id = harness.run(scenario())
        wakes = harness.segments(run_id) - 1
        print(f"{CHILDREN} children: {wakes} wake-ups, {client.conflicts} conflicts, {dict(client.requests)}")
        assert wakes == len(woken_at(harness, run_id))
        assert 1 <= wakes <= 10
        assert errors == []
        assert client.conflicts >= CHILDREN // CONFLICT_EVERY
        assert sorted(message.key for message in harness.messages(run_id)) == sorted(children_of(harness, run_id))


def test_of_two_children_that_end_an_hour_apart_each_wakes_the_parent_within_50_ms(table: Table) -> None:
    @workflow("parent").v("1")
    async def parent(run: Run) -> list[int]:
        children = [await sleepy.start_as_child(run, hours) for hours in (1, 2)]
        return [finished.value() for finished in await asyncio.gather(*(child.wait() for child in children))]

    with Harness(parent, sleepy, table=table) as harness:

        async def scenario() -> str:
            handle = await parent.start(harness.client)
            assert (await handle.wait()).value() == [1, 2]
            return handle.id

        run_id = harness.run(scenario())
        ended_at = [transitions(harness, child)[-1].at for child in children_of(harness, run_id)]
        assert ended_at[1] - ended_at[0] >= HOUR // timedelta(milliseconds=1)
        waited_ms = [woken - ended for woken, ended in zip(woken_at(harness, run_id), ended_at, strict=True)]
        assert 0 <= min(waited_ms) <= max(waited_ms) <= 50
