"""AWS in this process, by moto: for the local server and for tests. Nothing here leaves the machine or reads its credentials."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from threading import RLock
from typing import TYPE_CHECKING, TypeVar, cast

import boto3
from botocore.config import Config
from moto import mock_aws

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_dynamodb.type_defs import CreateTableInputTypeDef

LOCAL_REGION = "us-east-1"
_CREATE_TABLE_PROPERTIES = ("BillingMode", "AttributeDefinitions", "KeySchema", "GlobalSecondaryIndexes")

ResultT = TypeVar("ResultT")


class SerialisedClient:
    """A boto3 client whose calls go one at a time.

    moto's transactions copy the whole table and put the copy back when they are cancelled, without a lock: writes that
    other threads made in between would be lost.
    """

    def __init__(self, client: object) -> None:
        self._client = client
        self._lock = RLock()

    def __getattr__(self, name: str) -> object:
        """The client's operation of this name, behind the lock; anything else as it is."""
        found = getattr(self._client, name)
        return self._serialised(found) if callable(found) else found

    def _serialised(self, operation: Callable[..., ResultT]) -> Callable[..., ResultT]:
        def call(**parameters: object) -> ResultT:
            with self._lock:
                return operation(**parameters)

        return call


@contextmanager
def local_aws() -> "Iterator[DynamoDBClient]":
    """A DynamoDB client of a simulated AWS, empty at first and gone with the context. Two at once in a process are one AWS."""
    with mock_aws():
        client = boto3.client(
            "dynamodb",
            region_name=LOCAL_REGION,
            aws_access_key_id="local",
            aws_secret_access_key="local",
            config=Config(retries={"total_max_attempts": 1, "mode": "standard"}),
        )
        yield cast("DynamoDBClient", SerialisedClient(client))


def create_table(client: "DynamoDBClient", name: str, definition: Mapping[str, object]) -> None:
    """Create the table `name` from the properties of an `AWS::DynamoDB::Table`."""
    properties = {key: definition[key] for key in _CREATE_TABLE_PROPERTIES}
    client.create_table(**cast("CreateTableInputTypeDef", {"TableName": name, **properties}))
