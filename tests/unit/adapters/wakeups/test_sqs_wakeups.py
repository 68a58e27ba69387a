"""Hints by SQS, on a simulated one, and on one that does not answer."""

import json
import logging
from collections.abc import Iterator
from typing import TYPE_CHECKING, cast

import boto3
import pytest
from botocore.config import Config
from moto import mock_aws

from aiki_push.adapters.wakeups.sqs import SqsWakeups, parse_hint
from aiki_push.domain.errors import InvalidRequest
from aiki_push.domain.values import RunId, TimestampMs
from aiki_push.ports.wakeups import MAX_HINT_DELAY_MS, Hint
from aiki_push.testing import FAKE_NOW, FakeClock

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient

REGION = "eu-central-1"
RUN_ID = RunId("01KDWZ5A0000000000000000R1")
NOWHERE = "http://127.0.0.1:1/queue"
"""Nothing listens on port 1."""


@pytest.fixture
def client() -> Iterator["SQSClient"]:
    with mock_aws():
        yield boto3.client("sqs", region_name=REGION)


@pytest.fixture
def queue_url(client: "SQSClient") -> str:
    return client.create_queue(QueueName="hints")["QueueUrl"]


def hint(due_in_ms: int) -> Hint:
    return Hint(namespace="default", run_id=RUN_ID, due_at=TimestampMs(FAKE_NOW + due_in_ms))


@pytest.fixture
def sent(client: "SQSClient") -> list[dict[str, object]]:
    """The parameters of every request to send messages."""
    requests: list[dict[str, object]] = []
    event = "provide-client-params.sqs.SendMessageBatch"
    client.meta.events.register(event, lambda params, **_: requests.append(dict(params)))
    return requests


@pytest.mark.parametrize(
    ("due_in_ms", "delay_s"),
    [(-5_000, 0), (0, 0), (1, 0), (999, 0), (1_000, 1), (1_001, 2), (899_001, 900), (MAX_HINT_DELAY_MS, 900)],
)
def test_a_hint_is_delayed_by_what_is_left_rounded_up_to_seconds_unless_it_is_due_within_one(
    client: "SQSClient", queue_url: str, sent: list[dict[str, object]], due_in_ms: int, delay_s: int
) -> None:
    SqsWakeups(client, queue_url, FakeClock()).send(hint(due_in_ms))

    (request,) = sent
    (entry,) = cast(list[dict[str, object]], request["Entries"])
    body = str(entry["MessageBody"])
    assert request == {"QueueUrl": queue_url, "Entries": [{"Id": "0", "MessageBody": body, "DelaySeconds": delay_s}]}
    assert json.loads(body) == {"v": 1, "namespace": "default", "run_id": RUN_ID, "due_at": FAKE_NOW + due_in_ms}
    assert parse_hint(body) == hint(due_in_ms)


def test_a_hint_for_later_than_sqs_can_delay_is_not_sent(
    client: "SQSClient", queue_url: str, sent: list[dict[str, object]]
) -> None:
    SqsWakeups(client, queue_url, FakeClock()).send(hint(MAX_HINT_DELAY_MS + 1))
    assert sent == []


def test_many_hints_travel_ten_at_a_time_and_none_is_left_out(
    client: "SQSClient", queue_url: str, sent: list[dict[str, object]]
) -> None:
    hints = [hint(number) for number in range(24)]
    SqsWakeups(client, queue_url, FakeClock()).send(*hints[:12], hint(MAX_HINT_DELAY_MS + 1), *hints[12:])

    batches = [cast(list[dict[str, object]], request["Entries"]) for request in sent]
    assert [len(batch) for batch in batches] == [10, 10, 4]
    assert [parse_hint(str(entry["MessageBody"])) for batch in batches for entry in batch] == hints


def test_a_hint_that_the_queue_refuses_keeps_no_other_from_it(
    client: "SQSClient", queue_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    def refuse_the_first(parsed: dict[str, list[dict[str, str]]], **_: object) -> None:
        parsed["Failed"] = [{"Id": "0", "Code": "InternalError"}]

    client.meta.events.register("after-call.sqs.SendMessageBatch", refuse_the_first)
    with caplog.at_level(logging.WARNING):
        SqsWakeups(client, queue_url, FakeClock()).send(hint(0), hint(1))
    assert caplog.messages == [f"run {RUN_ID} got no hint (InternalError); the sweep will find it"]


def test_a_refused_hint_is_logged_by_code_and_forgotten(client: "SQSClient", caplog: pytest.LogCaptureFixture) -> None:
    wakeups = SqsWakeups(client, f"https://sqs.{REGION}.amazonaws.com/123456789012/gone", FakeClock())
    with caplog.at_level(logging.WARNING):
        wakeups.send(hint(0))

    (message,) = caplog.messages
    assert message == f"run {RUN_ID} got no hint (AWS.SimpleQueueService.NonExistentQueue); the sweep will find it"


def test_a_hint_that_cannot_be_sent_is_logged_and_forgotten(caplog: pytest.LogCaptureFixture) -> None:
    config = Config(connect_timeout=1, retries={"total_max_attempts": 1})
    client = boto3.client("sqs", region_name=REGION, endpoint_url=NOWHERE, config=config)
    with caplog.at_level(logging.WARNING, "aiki_push"):
        SqsWakeups(client, NOWHERE, FakeClock()).send(hint(0))

    (message,) = [record.message for record in caplog.records if record.name.startswith("aiki_push")]
    assert message == f"run {RUN_ID} got no hint (EndpointConnectionError); the sweep will find it"


def test_a_hint_of_a_newer_release_may_have_more_fields() -> None:
    body = json.dumps({"v": 1, "namespace": "default", "run_id": RUN_ID, "due_at": FAKE_NOW, "reason": "timer"})
    assert parse_hint(body) == hint(0)


@pytest.mark.parametrize(
    ("body", "fields"),
    [
        ("", ["body"]),
        ("not json", ["body"]),
        ("[]", ["body"]),
        ("null", ["body"]),
        ("{}", ["due_at", "namespace", "run_id"]),
        ('{"v": 2, "namespace": "n", "run_id": "r", "due_at": 1}', ["v"]),
        ('{"v": 1, "namespace": "n", "run_id": "r", "due_at": "tomorrow, secretly"}', ["due_at"]),
        ('{"v": 1, "namespace": "n", "run_id": "r", "due_at": "1"}', ["due_at"]),
        ('{"v": 1, "namespace": 5, "run_id": null, "due_at": 1.5}', ["due_at", "namespace", "run_id"]),
        ('{"v": 1, "namespace": "n", "run_id": "\ud800", "due_at": 1}', ["body"]),
    ],
)
def test_a_body_that_is_no_hint_is_refused_by_field_and_not_quoted(body: str, fields: list[str]) -> None:
    with pytest.raises(InvalidRequest) as caught:
        parse_hint(body)

    assert str(caught.value) == f"the message is no hint that this release understands: {', '.join(fields)}"
    errors = cast("list[dict[str, str]]", caught.value.fields["errors"])
    assert [error["field"] for error in errors] == fields
    assert "secretly" not in f"{caught.value} {errors}"
