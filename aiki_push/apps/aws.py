"""Clients of AWS, with bounded patience, and the secrets that one of them reads."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, cast

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from aiki_push.adapters.storage.dynamodb.client import dynamodb_client
from aiki_push.domain.errors import SettingsError

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_sqs import SQSClient

CONNECT_TIMEOUT_S = 1
READ_TIMEOUT_S = 3
MAX_ATTEMPTS = 2
"""Two attempts end within about nine seconds. What SQS does not take by then, the sweep makes up for."""


class SecretsClient(Protocol):
    """The one operation of Secrets Manager's boto3 client that is used here."""

    def get_secret_value(self, *, SecretId: str) -> Mapping[str, Any]:  # noqa: N803 - AWS's own spelling
        """The answer of "GetSecretValue": text is in `SecretString`."""
        ...


@dataclass(frozen=True, slots=True)
class AwsClients:
    """boto3 clients; safe to call from any thread."""

    dynamodb: "DynamoDBClient"
    sqs: "SQSClient"
    secrets: SecretsClient


def aws_clients() -> AwsClients:
    """Clients for the region and credentials of the environment. Making them takes a while; the first call connects.

    Raises SettingsError: there is no region, or what the environment says of AWS cannot be used.
    """
    config = Config(
        connect_timeout=CONNECT_TIMEOUT_S,
        read_timeout=READ_TIMEOUT_S,
        retries={"total_max_attempts": MAX_ATTEMPTS, "mode": "standard"},
    )
    try:
        return AwsClients(
            dynamodb=dynamodb_client(),
            sqs=boto3.client("sqs", config=config),
            secrets=cast("SecretsClient", boto3.client("secretsmanager", config=config)),
        )
    except BotoCoreError as error:
        raise SettingsError(
            f"AWS cannot be called ({type(error).__name__}); check AWS_REGION and the AWS configuration"
        ) from None


def read_secret(client: SecretsClient, arn: str, variable: str) -> str:
    """The text of the secret `arn`. Raises SettingsError, naming the setting `variable`: it cannot be read, or is not text."""
    try:
        text = client.get_secret_value(SecretId=arn).get("SecretString")
    except (BotoCoreError, ClientError) as error:
        reason = error.response.get("Error", {}).get("Code") if isinstance(error, ClientError) else type(error).__name__
        raise SettingsError(
            f"the secret that {variable} names cannot be read ({reason}); check its ARN and the permissions"
        ) from None
    if not isinstance(text, str):
        raise SettingsError(f"the secret that {variable} names holds bytes and should hold text")
    return text
