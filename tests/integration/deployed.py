"""What `template.yaml` deploys, on a simulated AWS: the table, the queue, the secrets, and the functions' own handlers."""

import importlib
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import boto3
import pytest
from moto import mock_aws

from aiki_push.adapters.signing.ed25519 import generate_signing_key
from aiki_push.adapters.signing.key_set import ActiveKey, KeySet
from aiki_push.adapters.storage.dynamodb.table import DynamoDbTable
from aiki_push.adapters.system import SystemClock, SystemEntropy
from aiki_push.adapters.wakeups.memory import MemoryWakeups
from aiki_push.apps.build import Ports, build_context
from aiki_push.apps.devserver.local_aws import create_table
from aiki_push.apps.settings import load_server_settings
from aiki_push.ports.clock import Clock
from aiki_push.server.service import Server
from infra.table import TABLE
from tests.integration.lambda_calls import REGION, FunctionContext, logging_as_before
from tests.unit.adapters.transport.lambda_events import http_api_event

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_sqs import SQSClient

TABLE_NAME = "deployed-runs"
CLAIM_SECRET = "a-claim-secret-of-more-than-thirty-two-bytes"

Handler = Callable[[object, FunctionContext], Any]


@dataclass(frozen=True)
class Answer:
    """An HTTP answer; `body` is parsed."""

    status: int
    content_type: str
    body: dict[str, Any]


@dataclass(frozen=True)
class Deployed:
    """The functions as Lambda would call them, one event at a time, and what lies around them."""

    api: Handler
    deliver: Handler
    recover: Handler
    dynamodb: "DynamoDBClient"
    sqs: "SQSClient"
    queue_url: str
    public_key: str
    environ: dict[str, str]

    def request(self, method: str, path: str, body: Mapping[str, object] | None = None) -> Answer:
        """What API Gateway would answer."""
        event = http_api_event(method, path, body=None if body is None else json.dumps(body))
        answer = self.api(event, FunctionContext())
        return Answer(answer["statusCode"], answer["headers"]["content-type"], json.loads(answer["body"]))

    def hints(self) -> list[str]:
        """The bodies of all messages that can be received now; they are deleted."""
        bodies = []
        while found := self.sqs.receive_message(QueueUrl=self.queue_url, MaxNumberOfMessages=10).get("Messages", []):
            for message in found:
                self.sqs.delete_message(QueueUrl=self.queue_url, ReceiptHandle=message["ReceiptHandle"])
                bodies.append(message["Body"])
        return bodies

    def delayed_hints(self) -> int:
        """How many messages wait in the queue for their time."""
        answer = self.sqs.get_queue_attributes(QueueUrl=self.queue_url, AttributeNames=["ApproximateNumberOfMessagesDelayed"])
        return int(answer["Attributes"]["ApproximateNumberOfMessagesDelayed"])

    def items(self) -> int:
        """How many items the table has."""
        return self.dynamodb.scan(TableName=TABLE_NAME, Select="COUNT")["Count"]

    def server_at(self, clock: Clock) -> Server:
        """A server of the same table whose time is `clock`'s, and whose hints are lost."""
        ports = Ports(
            table=DynamoDbTable(self.dynamodb, TABLE_NAME),
            wakeups=MemoryWakeups(clock),
            keys=_NoKeys(),
            claim_secrets=(CLAIM_SECRET.encode(),),
            clock=clock,
        )
        return Server(build_context(load_server_settings(self.environ), ports))


class _NoKeys:
    """A KeyRing for whoever signs nothing."""

    def signer(self, endpoint_secret: str | None = None) -> Any:
        raise AssertionError(f"nothing is signed here, least of all with {endpoint_secret is None}")

    def public_keys(self) -> tuple[str, ...]:
        return ()


@contextmanager
def deployed(**settings: str) -> Iterator[Deployed]:
    """A new deployment with further `settings`, which goes with the context."""
    with mock_aws(), pytest.MonkeyPatch.context() as patch, logging_as_before():
        dynamodb = boto3.client("dynamodb", region_name=REGION)
        sqs = boto3.client("sqs", region_name=REGION)
        secrets = boto3.client("secretsmanager", region_name=REGION)
        create_table(dynamodb, TABLE_NAME, TABLE)
        queue_url = sqs.create_queue(QueueName="deployed-hints")["QueueUrl"]
        keys = KeySet(active=ActiveKey(secret=generate_signing_key(SystemEntropy()), created_at=SystemClock().now()))
        environ = {
            "AIKI_TABLE_NAME": TABLE_NAME,
            "AIKI_HINT_QUEUE_URL": queue_url,
            "AIKI_CLAIM_TOKEN_SECRET_ARN": secrets.create_secret(Name="claims", SecretString=CLAIM_SECRET)["ARN"],
            "AIKI_SIGNING_KEYS_SECRET_ARN": secrets.create_secret(Name="keys", SecretString=keys.encoded().decode())["ARN"],
            "AIKI_DUE_SHARDS": "2",
            **settings,
        }
        for name, value in environ.items():
            patch.setenv(name, value)
        try:
            yield Deployed(
                api=_loaded("handlers.api"),
                deliver=_loaded("handlers.deliver"),
                recover=_loaded("handlers.recover"),
                dynamodb=dynamodb,
                sqs=sqs,
                queue_url=queue_url,
                public_key=keys.public_keys()[0],
                environ=environ,
            )
        finally:
            dynamodb.delete_table(TableName=TABLE_NAME)
            sqs.delete_queue(QueueUrl=queue_url)
            for name in ("claims", "keys"):
                secrets.delete_secret(SecretId=name, ForceDeleteWithoutRecovery=True)


def _loaded(module: str) -> Handler:
    """The handler as a new process would have it."""
    handler: Handler = importlib.reload(importlib.import_module(module)).handler
    return handler
