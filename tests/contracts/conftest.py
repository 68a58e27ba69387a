"""The store on every engine. One simulated AWS serves the whole session; each test has a table of its own."""

from collections.abc import Iterator
from itertools import count
from typing import TYPE_CHECKING

import pytest

from aiki_push.adapters.storage.store import SingleTableStore
from aiki_push.adapters.storage.table import Table
from aiki_push.apps.devserver.local_aws import create_table, local_aws
from aiki_push.testing import CountingTable, FakeClock, FaultyTable, SequentialEntropy
from infra.table import TABLE
from tests.contracts.engines import table_of

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

_NAMES = count(1)


@pytest.fixture(scope="session")
def dynamodb() -> "Iterator[DynamoDBClient]":
    with local_aws() as client:
        yield client


@pytest.fixture
def table_name(dynamodb: "DynamoDBClient") -> Iterator[str]:
    name = f"runs-{next(_NAMES)}"
    create_table(dynamodb, name, TABLE)
    yield name
    dynamodb.delete_table(TableName=name)


@pytest.fixture(params=["memory", "dynamodb"])
def table(request: pytest.FixtureRequest) -> Table:
    return table_of(request.param, request)


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def store(table: Table, clock: FakeClock) -> SingleTableStore:
    return SingleTableStore(table, clock, SequentialEntropy())


@pytest.fixture
def counting(table: Table) -> CountingTable:
    return CountingTable(table)


@pytest.fixture
def counted_store(counting: CountingTable, clock: FakeClock) -> SingleTableStore:
    return SingleTableStore(counting, clock, SequentialEntropy())


@pytest.fixture
def faulty(table: Table) -> FaultyTable:
    return FaultyTable(table)


@pytest.fixture
def faulty_store(faulty: FaultyTable, clock: FakeClock) -> SingleTableStore:
    return SingleTableStore(faulty, clock, SequentialEntropy())
