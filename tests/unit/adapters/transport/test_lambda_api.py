import json
from base64 import b64encode
from typing import Any

import pytest
from aws_lambda_powertools.utilities.typing import LambdaContext

from aiki_push.adapters.transport.lambda_api import lambda_api
from aiki_push.adapters.transport.wire import Wire
from aiki_push.domain.values import DurationMs
from aiki_push.ports.api.operation import Operation
from aiki_push.ports.api.runs import GetRun, StartRun, WaitRun
from aiki_push.testing.entropy import SequentialEntropy
from tests.unit.adapters.transport.lambda_events import http_api_event
from tests.unit.adapters.transport.sample_service import SampleService
from tests.unit.adapters.transport.sample_values import RUN, RUN_ID

GET_RUN = f"/v1/runs/{RUN_ID}"
START = {"workflow": "order", "version": "1", "input": "🧾"}


def answers(service: SampleService, *events: dict[str, Any]) -> list[dict[str, Any]]:
    handler = lambda_api(Wire(service, namespace="blue", entropy=SequentialEntropy()))
    return [handler(event, LambdaContext()) for event in events]


def test_an_answer_is_text_with_the_headers_of_the_wire() -> None:
    assert answers(SampleService(RUN), http_api_event("GET", GET_RUN)) == [
        {
            "statusCode": 200,
            "headers": {"content-type": "application/json", "cache-control": "no-store"},
            "cookies": [],
            "body": GetRun.answer.dump_json(RUN).decode(),
            "isBase64Encoded": False,
        }
    ]


@pytest.mark.parametrize(
    ("path", "stage"),
    [
        (GET_RUN, "$default"),
        (f"/prod{GET_RUN}", "prod"),
        (GET_RUN, "prod"),  # a domain of one's own
        (f"/v1{GET_RUN}", "v1"),
    ],
)
def test_the_stage_is_no_part_of_the_path(path: str, stage: str) -> None:
    service = SampleService(RUN)
    assert [answer["statusCode"] for answer in answers(service, http_api_event("GET", path, stage))] == [200]
    assert service.calls == [("blue", GetRun(run_id=RUN_ID))]


def test_a_stage_is_taken_off_as_a_whole_part_only() -> None:
    [answer] = answers(SampleService(RUN), http_api_event("GET", f"/production{GET_RUN}", "prod"))
    assert answer["statusCode"] == 404


@pytest.mark.parametrize("is_base64", [False, True])
def test_a_body_comes_as_text_or_base64(is_base64: bool) -> None:
    service = SampleService(RUN)
    text = json.dumps(START, ensure_ascii=False)
    body = b64encode(text.encode()).decode() if is_base64 else text
    answers(service, http_api_event("POST", "/v1/runs", body=body, isBase64Encoded=is_base64))
    assert service.calls == [("blue", StartRun(workflow="order", version="1", input="🧾"))]


@pytest.mark.parametrize(
    ("body", "is_base64", "message"),
    [
        ("e30=!", True, "is not base64"),
        (b64encode(b"\xff").decode(), True, "body is not UTF-8 at byte 0"),
        ('{"workflow": "\ud800"}', False, "body is not UTF-8 at byte 14"),
    ],
)
def test_a_body_that_is_no_text_is_refused(body: str, is_base64: bool, message: str) -> None:
    service = SampleService(RUN)
    [answer] = answers(service, http_api_event("POST", "/v1/runs", body=body, isBase64Encoded=is_base64))
    assert (answer["statusCode"], answer["headers"]["content-type"]) == (400, "application/problem+json")
    assert json.loads(answer["body"])["errors"] == [{"field": "body", "message": message}]
    assert service.calls == []


@pytest.mark.parametrize("name", ["Aiki-Version", "aiki-version", "AIKI-VERSION"])
def test_the_case_of_a_header_makes_no_difference(name: str) -> None:
    [answer] = answers(SampleService(RUN), http_api_event("GET", GET_RUN, headers={name: "7.0"}))
    assert json.loads(answer["body"])["code"] == "unsupported_version"


def test_a_query_is_read_as_it_was_sent() -> None:
    service = SampleService(RUN)
    misleading = {"timeout_ms": "5,6"}
    good = http_api_event("GET", f"{GET_RUN}/wait", rawQueryString="timeout_ms=%35", queryStringParameters=misleading)
    twice = http_api_event("GET", f"{GET_RUN}/wait", rawQueryString="timeout_ms=5&timeout_ms=6", queryStringParameters=misleading)
    statuses = [answer["statusCode"] for answer in answers(service, good, twice)]
    assert (statuses, service.calls) == ([200, 400], [("blue", WaitRun(run_id=RUN_ID, timeout_ms=DurationMs(5)))])


@pytest.mark.parametrize(
    ("method", "path", "status", "code"),
    [
        ("GET", "/", 404, "not_found"),
        ("GET", "/v1/runs/a#b", 400, "invalid_request"),  # beyond what the resolver's patterns match
        ("GET", '/v1/runs/a"b', 400, "invalid_request"),
        ("PATCH", "/v1/runs", 405, "method_not_allowed"),
        ("OPTIONS", "/v1/runs", 405, "method_not_allowed"),
    ],
)
def test_what_the_resolver_does_not_find_is_answered_like_everything_else(method: str, path: str, status: int, code: str) -> None:
    [answer] = answers(SampleService(RUN), http_api_event(method, path))
    assert (answer["statusCode"], answer["headers"]["content-type"]) == (status, "application/problem+json")
    assert json.loads(answer["body"])["code"] == code


def test_one_handler_answers_one_event_after_another() -> None:
    def echo(operation: Operation[Any]) -> object:
        return RUN.model_copy(update={"id": operation.model_dump()["run_id"]})

    service = SampleService(echo)
    ids = [f"0{index:025}" for index in range(20)]
    bodies = [json.loads(answer["body"]) for answer in answers(service, *[http_api_event("GET", f"/v1/runs/{i}") for i in ids])]
    assert [body["id"] for body in bodies] == ids
