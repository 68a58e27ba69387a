"""The boto3 client that the DynamoDB table expects."""

from typing import TYPE_CHECKING

import boto3
from botocore.config import Config

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

CONNECT_TIMEOUT_S = 1
READ_TIMEOUT_S = 3
MAX_CONNECTIONS = 50


def dynamodb_client(region: str | None = None, endpoint_url: str | None = None) -> "DynamoDBClient":
    """A client that answers or fails within seconds and never retries by itself: the stores do, in their own time budget.

    Without arguments region and endpoint come from the environment, as always with boto3.
    """
    config = Config(
        connect_timeout=CONNECT_TIMEOUT_S,
        read_timeout=READ_TIMEOUT_S,
        max_pool_connections=MAX_CONNECTIONS,
        retries={"total_max_attempts": 1, "mode": "standard"},
    )
    return boto3.client("dynamodb", region_name=region, endpoint_url=endpoint_url, config=config)
