"""What the functions ask of AWS while they do their work, on a simulated one, is what `template.yaml` allows them."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeAlias

import boto3
import pytest
from moto import mock_aws

from aiki_push.adapters.storage.dynamodb.table import DynamoDbTable
from aiki_push.adapters.system import SystemClock
from aiki_push.domain.run_states import Cancelled, Queued
from aiki_push.domain.values import Inline, TimestampMs
from aiki_push.ports.api.checkpoints import Complete
from aiki_push.testing import FakeClock
from tests.infra.template import FUNCTIONS, permissions
from tests.integration.controls import cancel
from tests.integration.deployed import TABLE_NAME, Deployed, deployed
from tests.integration.lambda_calls import SCHEDULED_EVENT, FunctionContext, sqs_event
from tests.integration.owners import Owner, claim, start
from tests.integration.waiting_runs import FIRST_CHILD, end, inbox, numbered, parents, start_children
from tests.local_system import LocalSystem
from tests.unit.adapters.transport.lambda_events import http_api_event

Used: TypeAlias = set[tuple[str, str]]
"""Action and resource, as the template writes it."""

TABLE, QUEUE = '{"Fn::GetAtt": ["Table", "Arn"]}', '{"Fn::GetAtt": ["HintQueue", "Arn"]}'
AN_HOUR_MS = 3_600_000
ONE = {"name": "w", "version": "1"}
LARGE = Complete(output=Inline(value="x" * 200_000))


@contextmanager
def recording() -> Iterator[list[tuple[str, Mapping[str, Any]]]]:
    """Operation and parameters of every call that clients make which are built meanwhile, on a simulated AWS."""
    calls: list[tuple[str, Mapping[str, Any]]] = []

    def record(params: Mapping[str, Any], model: Any, **_: object) -> None:
        calls.append((model.name, params))

    with mock_aws():  # its session, and so the list of those who listen, goes with it
        boto3._get_default_session().events.register("provide-client-params.*.*", record)
        yield calls


def used(calls: list[tuple[str, Mapping[str, Any]]]) -> Used:
    """What IAM wants for these calls, apart from secrets and from the queue that the test reads itself."""
    found: Used = set()
    for operation, params in calls:
        match operation:
            case "TransactWriteItems":
                found |= {(f"dynamodb:{action}Item", TABLE) for item in params["TransactItems"] for action in item}
            case "Query" if "IndexName" in params:
                found.add(("dynamodb:Query", json.dumps({"Fn::Sub": f"${{Table.Arn}}/index/{params['IndexName']}"})))
            case "SendMessage" | "SendMessageBatch":
                found.add(("sqs:SendMessage", QUEUE))
            case "GetSecretValue" | "ReceiveMessage" | "DeleteMessage":
                continue
            case _:
                found.add((f"dynamodb:{operation}", TABLE))
    return found


@pytest.mark.parametrize("name", ["DeliverFunction", "RecoverFunction"])
def test_a_function_that_gives_runs_what_they_need_is_allowed_all_of_it(name: str) -> None:
    with recording() as calls, deployed(AIKI_DUE_SHARDS="1") as aws:
        # To this system it is an hour ago: whatever it makes due is overdue, and so is the claim that nobody refreshes.
        clock = FakeClock(TimestampMs(SystemClock().now() - AN_HOUR_MS))
        system = LocalSystem(DynamoDbTable(aws.dynamodb, TABLE_NAME), clock=clock)
        forgotten = claim(system, start(system)).run.id
        waiting = parents(system, 2)
        end(system, FIRST_CHILD, LARGE)
        root = Owner(system, claim(system, start(system), "claim-2"))
        start_children(root, numbered(7))
        cancel(system, root.claimed.run.id)

        calls.clear()
        look_after(aws, name, system)
        asked = used(calls)

        assert system.run(forgotten).state == Queued(reason="recovery")
        assert [len(inbox(system, run_id)) for run_id in waiting] == [1, 1]
        assert system.run(numbered(7)).state == Cancelled()
    assert asked - permissions(FUNCTIONS[name]) == set()
    assert ("dynamodb:DeleteItem", TABLE) in asked


def look_after(aws: Deployed, name: str, system: LocalSystem) -> None:
    """Let the function do what is due, and what that makes due."""
    hints = [hint.model_dump_json() for hint in system.wakeups.hints]
    for _ in range(2):
        if name == "RecoverFunction":
            assert aws.recover(SCHEDULED_EVENT, FunctionContext())["failed"] == 0
        else:
            assert aws.deliver(sqs_event(hints), FunctionContext()) == {"batchItemFailures": []}
        hints = aws.hints()


def test_the_api_is_allowed_what_it_asks_for() -> None:
    with recording() as calls, deployed() as aws:
        calls.clear()
        run = {"workflow": "w", "version": "1"}
        started = aws.request("POST", "/v1/runs", {**run, "input": "x" * 200_000, "reference": {"id": "order-1"}}).body
        path = f"/v1/runs/{started['id']}"
        assert aws.request("PUT", "/v1/endpoints/e", {"url": "https://example.com/", "workflows": [ONE]}).status == 200
        assert aws.request("DELETE", "/v1/endpoints/e").status == 200
        assert aws.request("POST", f"{path}/events/paid", {"reference": "payment-1"}).status == 200
        for query in ("", "workflow=w", "status=queued", "workflow=w&version=1&reference=order-1"):
            assert len(listed(aws, query)) == 1
        claims = {"request_id": "r", "executor": "e", "limit": 1, "workflows": [ONE]}
        assert len(aws.request("POST", "/v1/claims", claims).body["claims"]) == 1
        assert aws.request("POST", f"{path}/cancel", {"operation_id": "o"}).status == 200
        asked = used(calls)
    assert asked == {need for need in permissions(FUNCTIONS["ApiFunction"]) if not need[0].startswith("secretsmanager:")}


def listed(aws: Deployed, query: str) -> list[object]:
    """The runs that match."""
    answer = aws.api(http_api_event("GET", "/v1/runs", rawQueryString=query), FunctionContext())
    runs: list[object] = json.loads(answer["body"])["runs"]
    return runs
