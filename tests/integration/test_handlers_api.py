"""The API's Lambda function, called as API Gateway calls it, on a simulated AWS."""

import json
from base64 import b64encode
from collections.abc import Iterator

import pytest

from aiki_push.adapters.wakeups.sqs import parse_hint
from aiki_push.domain.values import RunId, TimestampMs
from aiki_push.ports.wakeups import Hint
from tests.integration.deployed import Answer, Deployed, deployed
from tests.integration.lambda_calls import FunctionContext
from tests.unit.adapters.transport.lambda_events import http_api_event

RUN_ID = "01KDWZ5A0000000000000000R1"

pytestmark = pytest.mark.usefixtures("dynamodb")
"""One simulated AWS for all of them makes each of its clients once."""


@pytest.fixture
def aws() -> Iterator[Deployed]:
    with deployed() as made:
        yield made


def started(aws: Deployed) -> Answer:
    return aws.request("POST", "/v1/runs", {"run_id": RUN_ID, "workflow": "order", "version": "1", "input": {"city": "Zürich"}})


def test_a_started_run_is_queued_and_can_be_read(aws: Deployed) -> None:
    start = started(aws)

    assert (start.status, start.content_type) == (200, "application/json")
    assert (start.body["id"], start.body["state"], start.body["revision"]) == (RUN_ID, {"status": "queued", "reason": "new"}, 0)
    assert aws.request("GET", f"/v1/runs/{RUN_ID}") == start
    (entry,) = aws.request("GET", f"/v1/runs/{RUN_ID}/history").body["entries"][:1]
    assert entry["record"]["value"] == {"kind": "inline", "value": {"city": "Zürich"}}


def test_a_start_sends_one_hint_for_now(aws: Deployed) -> None:
    start = started(aws)
    (body,) = aws.hints()
    assert parse_hint(body) == Hint(namespace="default", run_id=RunId(RUN_ID), due_at=TimestampMs(start.body["due_at"]))


def test_a_repeated_start_is_the_same_start(aws: Deployed) -> None:
    first = started(aws)
    assert (started(aws), aws.items()) == (first, 1)


def test_a_body_in_base64_is_read(aws: Deployed) -> None:
    body = b64encode(json.dumps({"run_id": RUN_ID, "workflow": "order", "version": "1"}).encode()).decode()
    event = {**http_api_event("POST", "/v1/runs"), "body": body, "isBase64Encoded": True}
    answer = aws.api(event, FunctionContext())
    assert (answer["statusCode"], json.loads(answer["body"])["id"]) == (200, RUN_ID)


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "code", "fields"),
    [
        ("POST", "/v1/runs", {"workflow": "a#b", "version": "1", "inputs": 1}, 400, "invalid_request", ["inputs", "workflow"]),
        ("POST", "/v1/runs", [], 400, "invalid_request", ["body"]),
        ("GET", "/v1/runs/nothing", None, 400, "invalid_request", ["run_id"]),
        ("GET", f"/v1/runs/{RUN_ID}", None, 404, "not_found", []),
        ("GET", "/v2/runs", None, 404, "not_found", []),
        ("PUT", "/v1/runs", {}, 405, "method_not_allowed", []),
    ],
)
def test_a_bad_request_gets_a_problem_that_names_its_fields_and_changes_nothing(
    aws: Deployed, method: str, path: str, body: object, status: int, code: str, fields: list[str]
) -> None:
    event = http_api_event(method, path, body=None if body is None else json.dumps(body))
    answer = aws.api(event, FunctionContext())
    problem = json.loads(answer["body"])

    assert (answer["statusCode"], problem["code"]) == (status, code)
    assert answer["headers"]["content-type"] == "application/problem+json"
    assert sorted(error["field"] for error in problem.get("errors", [])) == fields
    assert (aws.items(), aws.hints()) == (0, [])


def test_the_public_keys_are_those_of_the_secret(aws: Deployed) -> None:
    assert aws.request("GET", "/v1/signing-keys").body == {"public_keys": [aws.public_key]}


def test_the_settings_of_the_environment_are_those_of_the_server() -> None:
    name = "AIKI_DAEMONS__RECOVER_OVERDUE_OUTBOX_ENTRIES__CLAIM_IDLE_TIMEOUT_MS"
    with deployed(**{name: "3000", "AIKI_NAMESPACE": "team"}) as aws:
        assert aws.request("GET", "/health").body["claim_idle_timeout_ms"] == 3_000
        started(aws)
        assert [parse_hint(body).namespace for body in aws.hints()] == ["team"]
