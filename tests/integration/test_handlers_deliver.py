"""The deliver function, called as SQS calls it: from a start's hint to the endpoint, on a simulated AWS."""

import json
from collections.abc import Iterator

import pytest

from aiki_push.adapters.signing.standard_webhooks import StandardVerifier
from aiki_push.adapters.system import SystemClock
from aiki_push.ports.wakeups import Hint
from tests.integration.deployed import Deployed, deployed
from tests.integration.lambda_calls import FunctionContext, sqs_event
from tests.integration.raw_server import answer, raw_server

RUN_ID = "01KDWZ5A0000000000000000R1"
TOLERANCE_MS = 30_000
CLOSE = "connection: close"
"""Ends the connection with the answer: the function keeps others open for its next event, and here there is none."""

pytestmark = pytest.mark.usefixtures("dynamodb")
"""One simulated AWS for all of them makes each of its clients once."""


@pytest.fixture
def aws() -> Iterator[Deployed]:
    with deployed(AIKI_ALLOW_LOOPBACK_HTTP="true") as made:
        yield made


def start(aws: Deployed) -> None:
    assert aws.request("POST", "/v1/runs", {"run_id": RUN_ID, "workflow": "order", "version": "1", "input": 7}).status == 200


def register(aws: Deployed, url: str) -> None:
    endpoint = {"url": url, "workflows": [{"name": "order", "version": "1"}]}
    assert aws.request("PUT", "/v1/endpoints/orders", endpoint).status == 200


def offer_of(aws: Deployed) -> object:
    return aws.request("GET", f"/v1/runs/{RUN_ID}").body["offer"]


def test_a_starts_hint_becomes_a_signed_push_to_the_endpoint(aws: Deployed) -> None:
    with raw_server(answer(200, CLOSE)) as endpoint:
        register(aws, endpoint.url)
        start(aws)
        assert aws.deliver(sqs_event(aws.hints()), FunctionContext()) == {"batchItemFailures": []}

        (push,) = endpoint.received
    assert push.line == "POST /push HTTP/1.1"
    StandardVerifier([aws.public_key], TOLERANCE_MS).verify(dict(push.headers), push.body, SystemClock().now())
    message = json.loads(push.body)
    assert (message["type"], message["data"]) == (
        "run.ready",
        {
            "run_id": RUN_ID,
            "workflow": "order",
            "version": "1",
            "pool": None,
            "revision": 0,
            "namespace": "default",
            "audience": None,
        },
    )
    assert offer_of(aws) == {"attempts": 1, "last_error": None}


def test_a_run_without_an_endpoint_is_declined_and_says_so(aws: Deployed) -> None:
    start(aws)
    assert aws.deliver(sqs_event(aws.hints()), FunctionContext()) == {"batchItemFailures": []}
    assert offer_of(aws) == {
        "attempts": 1,
        "last_error": "no endpoint is registered for the run's workflow, version and pool",
    }


def test_an_endpoint_that_fails_is_shown_and_the_run_is_offered_again_later(aws: Deployed) -> None:
    with raw_server(answer(500, CLOSE)) as endpoint:
        register(aws, endpoint.url)
        start(aws)
        hints = aws.hints()
        for _ in range(2):
            assert aws.deliver(sqs_event(hints), FunctionContext()) == {"batchItemFailures": []}
        assert len(endpoint.received) == 1

    run = aws.request("GET", f"/v1/runs/{RUN_ID}").body
    assert run["offer"]["attempts"] == 1
    assert "500" in run["offer"]["last_error"]
    assert run["due_at"] > run["created_at"]
    assert aws.delayed_hints() >= 1


def test_bad_messages_are_dropped_and_the_hint_among_them_is_handled(aws: Deployed) -> None:
    with raw_server(answer(200, CLOSE)) as endpoint:
        register(aws, endpoint.url)
        start(aws)
        (hint,) = aws.hints()
        answered = aws.deliver(sqs_event(["", "{}", hint, '{"v": 99}']), FunctionContext())
        assert (answered, len(endpoint.received)) == ({"batchItemFailures": []}, 1)


def test_a_hint_for_a_run_that_is_gone_is_settled(aws: Deployed) -> None:
    hint = Hint.model_validate({"namespace": "default", "run_id": RUN_ID, "due_at": 0})
    assert aws.deliver(sqs_event([hint.model_dump_json()]), FunctionContext()) == {"batchItemFailures": []}


def test_a_hint_that_meets_a_fault_comes_back(aws: Deployed) -> None:
    start(aws)
    hints = aws.hints()
    aws.dynamodb.update_item(
        TableName="deployed-runs",
        Key={"PK": {"S": f"RUN#default#{RUN_ID}"}, "SK": {"S": "H"}},
        UpdateExpression="SET v = :v",
        ExpressionAttributeValues={":v": {"N": "99"}},
    )
    assert aws.deliver(sqs_event(hints), FunctionContext()) == {"batchItemFailures": [{"itemIdentifier": "message-0"}]}
