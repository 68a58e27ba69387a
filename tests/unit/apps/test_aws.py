"""Clients of AWS and the secrets that one of them reads."""

from collections.abc import Mapping
from typing import Any

import pytest
from botocore.exceptions import ClientError, EndpointConnectionError

from aiki_push.apps.aws import aws_clients, read_secret
from aiki_push.domain.errors import SettingsError

ARN = "arn:aws:secretsmanager:eu-central-1:123456789012:secret:aiki-AbCdEf"
VARIABLE = "AIKI_CLAIM_TOKEN_SECRET_ARN"


class Secrets:
    """A SecretsClient with one answer."""

    def __init__(self, answer: Mapping[str, Any] | Exception) -> None:
        self._answer = answer
        self.asked: list[str] = []

    def get_secret_value(self, *, SecretId: str) -> Mapping[str, Any]:  # noqa: N803 - AWS's own spelling
        self.asked.append(SecretId)
        if isinstance(self._answer, Exception):
            raise self._answer
        return self._answer


def refused(code: str) -> ClientError:
    return ClientError({"Error": {"Code": code, "Message": f"{ARN} of account 123456789012"}}, "GetSecretValue")


def test_a_secret_is_the_text_that_is_kept_under_its_arn() -> None:
    client = Secrets({"ARN": ARN, "SecretString": "the text"})
    assert (read_secret(client, ARN, VARIABLE), client.asked) == ("the text", [ARN])


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (refused("AccessDeniedException"), "cannot be read (AccessDeniedException); check its ARN and the permissions"),
        (
            EndpointConnectionError(endpoint_url="https://x"),
            "cannot be read (EndpointConnectionError); check its ARN and the permissions",
        ),
        ({"SecretBinary": b"the bytes"}, "holds bytes and should hold text"),
    ],
)
def test_a_secret_that_cannot_be_used_is_named_by_its_setting(answer: Mapping[str, Any] | Exception, told: str) -> None:
    with pytest.raises(SettingsError) as caught:
        read_secret(Secrets(answer), ARN, VARIABLE)
    assert str(caught.value) == f"the secret that {VARIABLE} names {told}"


def test_clients_wait_for_seconds_and_no_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-west-1")
    clients = aws_clients()
    secrets: Any = clients.secrets
    for client in (clients.sqs, secrets):
        config: Any = client.meta.config
        assert (client.meta.region_name, config.connect_timeout, config.read_timeout) == ("eu-west-1", 1, 3)
        assert config.retries["total_max_attempts"] == 2
    assert clients.dynamodb.meta.region_name == "eu-west-1"


def test_an_environment_without_a_region_is_a_readable_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AWS_DEFAULT_REGION")
    with pytest.raises(SettingsError) as caught:
        aws_clients()
    assert str(caught.value) == "AWS cannot be called (NoRegionError); check AWS_REGION and the AWS configuration"
