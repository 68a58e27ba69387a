from collections.abc import Iterator
from threading import Event, Thread
from typing import TYPE_CHECKING

import pytest

from aiki_push.apps.devserver.local_aws import LOCAL_REGION, SerialisedClient, create_table, local_aws
from infra.table import TABLE

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient


@pytest.fixture
def client() -> "Iterator[DynamoDBClient]":
    with local_aws() as one:
        yield one


class Operations:
    """A client whose `slow` operation ends when it is told to, and that notes the order of what happens."""

    def __init__(self) -> None:
        self.meta = "as it is"
        self.order: list[str] = []
        self.is_slow_begun = Event()
        self.may_slow_end = Event()

    def slow(self) -> str:
        self.order.append("slow begins")
        self.is_slow_begun.set()
        self.may_slow_end.wait(timeout=10)
        self.order.append("slow ends")
        return "answer"

    def quick(self, *, name: str) -> None:
        self.order.append(f"quick {name}")


def test_a_call_waits_until_the_one_before_it_has_ended() -> None:
    operations = Operations()
    client = SerialisedClient(operations)
    asked = Event()

    def call_quick() -> None:
        quick = client.quick
        assert callable(quick)
        asked.set()
        quick(name="one")

    slow = client.slow
    assert callable(slow)
    first = Thread(target=slow)
    second = Thread(target=call_quick)
    first.start()
    operations.is_slow_begun.wait(timeout=10)
    second.start()
    asked.wait(timeout=10)
    second.join(timeout=0.05)  # gives a client without a lock the time to fail
    operations.may_slow_end.set()
    first.join()
    second.join()
    assert operations.order == ["slow begins", "slow ends", "quick one"]


def test_what_is_no_operation_is_given_as_it_is() -> None:
    assert SerialisedClient(Operations()).meta == "as it is"
    with pytest.raises(AttributeError):
        _ = SerialisedClient(Operations()).unknown


def test_the_local_table_has_the_definition_that_it_was_created_from(client: "DynamoDBClient") -> None:
    create_table(client, "local-runs", TABLE)
    table = client.describe_table(TableName="local-runs")["Table"]
    assert table["KeySchema"] == TABLE["KeySchema"]
    indexes = [
        {name: index[name] for name in ("IndexName", "KeySchema", "Projection")} for index in table["GlobalSecondaryIndexes"]
    ]
    assert indexes == TABLE["GlobalSecondaryIndexes"]
    assert table["BillingModeSummary"]["BillingMode"] == TABLE["BillingMode"]


def test_a_local_client_has_its_own_region_whatever_the_environment_says(
    client: "DynamoDBClient", monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-north-1")
    assert client.meta.region_name == LOCAL_REGION


def test_two_local_aws_at_once_are_one() -> None:
    with local_aws() as outer, local_aws() as inner:
        create_table(outer, "short-lived", TABLE)
        assert "short-lived" in inner.list_tables()["TableNames"]
        inner.delete_table(TableName="short-lived")
        assert "short-lived" not in outer.list_tables()["TableNames"]
