import json
import logging
from collections.abc import Iterator
from threading import Event, Thread
from typing import Any
from urllib.parse import parse_qsl, urlencode

import pytest

from aiki_push.adapters.transport.encoding import encode
from aiki_push.adapters.transport.http_messages import HttpRequest, HttpResponse
from aiki_push.adapters.transport.wire import Wire
from aiki_push.domain.canonical_json import parse_json
from aiki_push.domain.errors import IllegalTransition, RateLimited, RevisionConflict, StorageUnavailable
from aiki_push.domain.values import Json
from aiki_push.ports.api.operation import Operation
from aiki_push.ports.api.runs import GetRun, StartRun
from aiki_push.testing.entropy import SequentialEntropy
from tests.unit.adapters.transport.sample_service import PATIENCE_S, SampleService, raising
from tests.unit.adapters.transport.sample_values import RUN, RUN_ID
from tests.unit.adapters.transport.samples import SAMPLES

SECRET = "whsec_do_not_show"
HEALTH_REQUEST = HttpRequest("GET", "/health")
JSON_HEADERS = {"content-type": "application/json", "cache-control": "no-store"}
PROBLEM_HEADERS = {"content-type": "application/problem+json", "cache-control": "no-store"}


def wire_to(service: SampleService, **options: int) -> Wire:
    return Wire(service, namespace="blue", entropy=SequentialEntropy(), **options)


def document(response: HttpResponse) -> Any:
    return json.loads(response.body)


def start(body: object, **headers: str) -> HttpRequest:
    sent = body if isinstance(body, bytes) else json.dumps(body).encode()
    return HttpRequest("POST", "/v1/runs", headers=headers, body=sent)


def test_an_operation_reaches_the_service_within_the_namespace_of_the_wire() -> None:
    service = SampleService(RUN)
    response = wire_to(service).handle(HttpRequest("GET", f"/v1/runs/{RUN_ID}"))
    assert service.calls == [("blue", GetRun(run_id=RUN_ID))]
    assert response == HttpResponse(200, JSON_HEADERS, GetRun.answer.dump_json(RUN))


def test_percent_encoding_in_a_path_is_undone() -> None:
    service = SampleService(RUN)
    wire_to(service).handle(HttpRequest("GET", f"/v1/runs/%30{RUN_ID[1:]}"))
    assert service.calls == [("blue", GetRun(run_id=RUN_ID))]


@pytest.mark.parametrize(("body", "is_set"), [({"input": None}, True), ({}, False)])
def test_no_input_is_told_from_null(body: dict[str, object], is_set: bool) -> None:
    service = SampleService(RUN)
    wire_to(service).handle(start({"workflow": "order", "version": "1", **body}))
    [(_, operation)] = service.calls
    assert (isinstance(operation, StartRun), "input" in operation.model_fields_set) == (True, is_set)


@pytest.mark.parametrize(
    ("error", "status", "headers", "members"),
    [
        (RevisionConflict("now at 7", revision=7), 409, {}, {"title": "Revision conflict", "revision": 7}),
        (
            IllegalTransition("not stalled", from_status="queued", status="lost", type="lost"),
            409,
            {},
            {"title": "Illegal transition", "from_status": "queued"},
        ),
        (StorageUnavailable("throttled"), 503, {"retry-after": "1"}, {"title": "Storage unavailable"}),
        (RateLimited("slow down"), 429, {"retry-after": "1"}, {"title": "Too many requests"}),
    ],
)
def test_an_error_of_the_service_becomes_a_problem_document(
    error: IllegalTransition, status: int, headers: dict[str, str], members: dict[str, object]
) -> None:
    response = wire_to(SampleService(raising(error))).handle(HEALTH_REQUEST)
    standard = {"type": f"urn:aiki-push:{error.code}", "status": status, "detail": error.detail, "code": error.code}
    assert (response.status, response.headers, document(response)) == (status, {**PROBLEM_HEADERS, **headers}, standard | members)


def fail_with_a_cause(_operation: Operation[Any]) -> object:
    try:
        raise RevisionConflict("now at 7")
    except RevisionConflict as error:
        raise ValueError(SECRET) from error


def test_a_fault_shows_a_reference_and_the_log_has_the_rest_but_no_value(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG):
        response = wire_to(SampleService(fail_with_a_cause)).handle(HEALTH_REQUEST)
    reference = "AAAAAAAAAAAAAAAB"
    assert (response.status, document(response)) == (
        500,
        {
            "type": "urn:aiki-push:internal",
            "title": "Internal error",
            "status": 500,
            "detail": f"a fault of the server; its log has more at {reference}",
            "code": "internal",
            "reference": reference,
        },
    )
    [record] = caplog.records
    text = record.getMessage()
    assert text.startswith(f"get_health failed (reference {reference})\n")
    assert "aiki_push.domain.errors.RevisionConflict: now at 7\n" in text
    assert text.endswith("builtins.ValueError\n")
    assert "in fail_with_a_cause" in text
    assert (SECRET in text, record.exc_info) == (False, None)


def test_an_answer_that_cannot_be_written_is_a_fault() -> None:
    assert wire_to(SampleService(1)).handle(HEALTH_REQUEST).status == 500


def test_requests_beyond_the_limit_are_told_to_come_back_and_later_ones_are_served() -> None:
    entered, leave = Event(), Event()
    health = SAMPLES["get_health"][1]

    def answer(operation: Operation[Any]) -> object:
        if isinstance(operation, GetRun):
            entered.set()
            leave.wait(PATIENCE_S)
            return RUN
        return health

    wire = wire_to(SampleService(answer), max_concurrent_requests=1)
    held = Thread(target=wire.handle, args=[HttpRequest("GET", f"/v1/runs/{RUN_ID}")])
    held.start()
    entered.wait(PATIENCE_S)
    refused = wire.handle(HEALTH_REQUEST)
    leave.set()
    held.join()
    assert (refused.status, refused.headers["retry-after"], document(refused)["code"]) == (429, "1", "rate_limited")
    assert wire.handle(HEALTH_REQUEST).status == 200


def test_a_fault_gives_its_place_back() -> None:
    wire = wire_to(SampleService(raising(ValueError())), max_concurrent_requests=1)
    assert [wire.handle(HEALTH_REQUEST).status for _ in range(2)] == [500, 500]


@pytest.mark.parametrize(("size", "status"), [(60, 200), (61, 413)])
def test_a_body_may_be_as_long_as_the_limit_and_no_longer(size: int, status: int) -> None:
    body = json.dumps({"workflow": "order", "version": "1"}).encode().ljust(size)
    service = SampleService(RUN)
    response = wire_to(service, max_body_bytes=60).handle(start(body))
    assert (response.status, len(service.calls)) == (status, 1 if status == 200 else 0)


@pytest.mark.parametrize("version", ["0.0", "0.1"])
def test_a_client_of_this_minor_or_the_previous_one_may_send_no_unknown_field(version: str) -> None:
    body = {"workflow": "order", "version": "1", "new": 1}
    response = wire_to(SampleService(RUN)).handle(start(body, **{"aiki-version": version}))
    assert (response.status, document(response).get("errors")) == (400, [{"field": "new", "message": "is unknown"}])


def test_fields_of_a_newer_client_are_passed_over_wherever_they_are() -> None:
    service = SampleService(RUN)
    body = {"workflow": "order", "version": "1", "new": 1, "options": {"priority": 1, "newer": 2}}
    request = HttpRequest("POST", "/v1/runs", "newest=3", {"aiki-version": "0.2"}, json.dumps(body).encode())
    assert wire_to(service).handle(request).status == 200
    assert service.calls[0][1].model_dump() == {
        "run_id": None,
        "workflow": "order",
        "version": "1",
        "input": None,
        "options": {"pool": None, "priority": 1, "retry": None, "delay_ms": None},
        "reference": None,
    }


def test_a_newer_client_is_held_to_the_fields_that_are_known() -> None:
    request = start({"workflow": "", "version": "1"}, **{"aiki-version": "0.2"})
    response = wire_to(SampleService(RUN)).handle(request)
    assert [fault["field"] for fault in document(response)["errors"]] == ["workflow"]


def test_a_client_of_another_major_is_told_who_is_to_upgrade() -> None:
    service = SampleService()
    response = wire_to(service).handle(HttpRequest("GET", "/health", headers={"aiki-version": "1.0"}))
    assert (response.status, document(response)["code"], service.calls) == (400, "unsupported_version", [])
    assert document(response)["detail"] == "the client is of version 1.0, the server of 0.1: upgrade the server"


REFUSED = [
    HttpRequest("GET", f"/v1/{SECRET}"),
    HttpRequest("GET", f"/v1/runs/{SECRET}"),
    HttpRequest("GET", f"/v1/runs/{RUN_ID}/wait", f"timeout_ms={SECRET}"),
    HttpRequest("GET", f"/v1/runs/{RUN_ID}/history", f"cursor={SECRET}!"),
    HttpRequest("GET", "/health", headers={"aiki-version": SECRET}),
    start(f'{{"workflow": "{SECRET}", '.encode()),
    start({"workflow": [SECRET], "version": f"#{SECRET}", "options": {"priority": SECRET, "pool": {"a": SECRET}}}),
    start({"workflow": "order", "version": "1", "input": [SECRET, 2**60]}),
    HttpRequest(
        "POST",
        f"/v1/runs/{RUN_ID}/checkpoints",
        body=json.dumps(
            {"records": [{"type": SECRET}], "end": {"to": SECRET}, "token": SECRET * 99, "position": SECRET}
        ).encode(),
    ),
    HttpRequest("PUT", "/v1/endpoints/a", body=json.dumps({"secret": SECRET * 99, "url": [SECRET]}).encode()),
]


@pytest.mark.parametrize("request_", REFUSED)
def test_no_value_of_a_refused_request_is_shown(request_: HttpRequest, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG):
        response = wire_to(SampleService(RUN)).handle(request_)
    assert 400 <= response.status < 500
    shown = repr(request_).replace(request_.path, "") + response.body.decode() + caplog.text
    assert SECRET not in shown


def spoilt(value: Json) -> Iterator[Json]:
    """Copies of `value`, each with one of its parts replaced."""
    yield SECRET + "!"
    if isinstance(value, dict):
        yield from ({**value, key: other} for key in value for other in spoilt(value[key]))
    if isinstance(value, list):
        yield from ([*value[:index], other, *value[index + 1 :]] for index, item in enumerate(value) for other in spoilt(item))


@pytest.mark.parametrize(("operation", "answer"), SAMPLES.values(), ids=SAMPLES)
def test_no_value_is_shown_wherever_it_stands_in_a_request(operation: Operation[Any], answer: object) -> None:
    wire = wire_to(SampleService(answer))
    encoded = encode(operation)
    path, _, query = encoded.target.partition("?")
    pairs = parse_qsl(query)
    queries = [urlencode([*pairs[:i], (name, SECRET + "!"), *pairs[i + 1 :]]) for i, (name, _) in enumerate(pairs)]
    bodies = [b""] if encoded.body is None else [json.dumps(body).encode() for body in spoilt(parse_json(encoded.body))]
    requests = [HttpRequest(operation.method, path, one, body=body) for one in queries or [""] for body in bodies]
    responses = [wire.handle(request) for request in requests]
    refusals = [response for response in responses if response.status != 200]
    assert {response.status for response in refusals} <= {400}
    assert SECRET not in " ".join(response.body.decode() for response in refusals)
