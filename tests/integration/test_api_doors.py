"""One wire, three doors: the same request gets the same answer through each."""

import asyncio
import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from aiki_push.adapters.transport.http_client import HttpApi
from aiki_push.adapters.transport.http_messages import HttpRequest
from aiki_push.adapters.transport.wire import Wire
from aiki_push.domain.errors import InvalidRequest
from aiki_push.domain.values import Json
from aiki_push.ports.api.operation import Operation
from aiki_push.ports.api.runs import GetHistory
from aiki_push.testing.clocks import FakeClock
from aiki_push.testing.entropy import SequentialEntropy
from tests.integration.api_doors import DOORS, Door, DoorTransport
from tests.unit.adapters.transport.sample_service import RUN_ID, SAMPLES, SampleService, raising

MAX_BODY_BYTES = 10_000

CHECKPOINTS = f"/v1/runs/{RUN_ID}/checkpoints"
RUN_PATH = f"/v1/runs/{RUN_ID}"
GOOD_START = {"workflow": "order", "version": "1"}
GOOD_CHECKPOINT = {"token": "t", "checkpoint_id": "k", "position": 0, "records": []}
IS_UNKNOWN = "is unknown"
NAME = "String should match pattern '^[A-Za-z0-9._:-]{1,128}$'"
NUMBER = "Input should be a valid integer"


def post(path: str, body: object) -> HttpRequest:
    return HttpRequest("POST", path, body=body if isinstance(body, bytes) else json.dumps(body).encode())


BAD_INPUT: Mapping[str, tuple[HttpRequest, dict[str, str]]] = {
    "unknown field": (post("/v1/runs", {**GOOD_START, "inputs": 1}), {"inputs": IS_UNKNOWN}),
    "unknown nested field": (post("/v1/runs", {**GOOD_START, "options": {"pooll": "a"}}), {"options.pooll": IS_UNKNOWN}),
    "unknown parameter": (HttpRequest("GET", RUN_PATH, "verbose=1"), {"verbose": IS_UNKNOWN}),
    "parameter beside a body": (replace(post("/v1/runs", GOOD_START), query="run_id=1"), {"run_id": IS_UNKNOWN}),
    "missing fields": (post("/v1/runs", {}), {"workflow": "is required", "version": "is required"}),
    "no body": (HttpRequest("POST", "/v1/runs"), {"workflow": "is required", "version": "is required"}),
    "text for a number": (post(CHECKPOINTS, {**GOOD_CHECKPOINT, "position": "0"}), {"position": NUMBER}),
    "bool for a number": (post(CHECKPOINTS, {**GOOD_CHECKPOINT, "position": True}), {"position": NUMBER}),
    "float for a number": (post(CHECKPOINTS, {**GOOD_CHECKPOINT, "position": 1.0}), {"position": NUMBER}),
    "number for a text": (post("/v1/runs", {**GOOD_START, "workflow": 7}), {"workflow": "Input should be a valid string"}),
    "null for a text": (post("/v1/runs", {**GOOD_START, "workflow": None}), {"workflow": "Input should be a valid string"}),
    "object for a list": (post(CHECKPOINTS, {**GOOD_CHECKPOINT, "records": {}}), {"records": "Input should be a valid array"}),
    "text for a number deep inside": (
        post(CHECKPOINTS, {**GOOD_CHECKPOINT, "records": [{"type": "task_cancelled", "at": "1", "task_id": "a"}]}),
        {"records[0].at": NUMBER},
    ),
    "several at once": (
        post("/v1/runs", {"workflow": "a#b", "version": "", "run_id": "x", "options": {"priority": 10}}),
        {
            "run_id": "String should match pattern '^[0-7][0-9A-HJKMNP-TV-Z]{25}$'",
            "workflow": NAME,
            "version": NAME,
            "options.priority": "Input should be less than or equal to 9",
        },
    ),
    "separator in a name": (HttpRequest("GET", "/v1/endpoints/a%23b"), {"endpoint_id": NAME}),
    "slash in a name": (HttpRequest("GET", "/v1/endpoints/a%2Fb"), {"endpoint_id": NAME}),
    "line end in a name": (post("/v1/runs", {**GOOD_START, "workflow": "order\n"}), {"workflow": NAME}),
    "id that is none": (
        HttpRequest("GET", "/v1/runs/none"),
        {"run_id": "String should match pattern '^[0-7][0-9A-HJKMNP-TV-Z]{25}$'"},
    ),
    "field of the path in the body": (
        post(CHECKPOINTS, {**GOOD_CHECKPOINT, "run_id": RUN_ID}),
        {"run_id": "belongs in the path alone"},
    ),
    "fault of every kind at once": (
        replace(post("/v1/endpoints/a", {"endpoint_id": "a", "url": "https://a", "colour": 1}), method="PUT", query="pools=eu"),
        {
            "pools": IS_UNKNOWN,
            "endpoint_id": "belongs in the path alone",
            "workflows": "is required",
            "colour": IS_UNKNOWN,
        },
    ),
    "field of the path in the query": (HttpRequest("GET", RUN_PATH, f"run_id={RUN_ID}"), {"run_id": "belongs in the path alone"}),
    "parameter given twice": (
        HttpRequest("GET", f"{RUN_PATH}/wait", "timeout_ms=1&timeout_ms=1"),
        {"timeout_ms": "is given more than once"},
    ),
    "parameter given twice, in different spellings": (
        HttpRequest("GET", f"{RUN_PATH}/wait", "timeout_ms=1&timeout%5Fms=1"),
        {"timeout_ms": "is given more than once"},
    ),
    "parameter that is no number": (
        HttpRequest("GET", f"{RUN_PATH}/wait", "timeout_ms=soon"),
        {"timeout_ms": "Input should be a valid integer, unable to parse string as an integer"},
    ),
    "parameter without a value": (
        HttpRequest("GET", f"{RUN_PATH}/history", "cursor"),
        {"cursor": "String should have at least 1 character"},
    ),
    "parameter out of range": (
        HttpRequest("GET", f"{RUN_PATH}/wait", "timeout_ms=60001"),
        {"timeout_ms": "Input should be less than or equal to 60000"},
    ),
    "parameter that is not UTF-8": (
        HttpRequest("GET", f"{RUN_PATH}/history", "cursor=%FF"),
        {"query": "is not percent-encoded UTF-8 of at most 100 parameters"},
    ),
    "too many parameters": (
        HttpRequest("GET", RUN_PATH, "&".join(f"a{index}=" for index in range(101))),
        {"query": "is not percent-encoded UTF-8 of at most 100 parameters"},
    ),
    "path that is not UTF-8": (HttpRequest("GET", "/v1/runs/%FF%FE"), {"path": "is not percent-encoded UTF-8"}),
    "body where none belongs": (
        HttpRequest("DELETE", "/v1/endpoints/a", body=b"{}"),
        {"body": "is not taken here: use query parameters"},
    ),
    "no JSON": (post("/v1/runs", b"workflow=order"), {"body": "body is not JSON: Expecting value: line 1 column 1 (char 0)"}),
    "half a body": (
        post("/v1/runs", b'{"workflow": "order"'),
        {"body": "body is not JSON: Expecting ',' delimiter: line 1 column 21 (char 20)"},
    ),
    "no object": (post("/v1/runs", [GOOD_START]), {"body": "should be a JSON object"}),
    "NaN": (
        post("/v1/runs", b'{"workflow": "order", "version": "1", "input": NaN}'),
        {"body": "body is not JSON: it has no number NaN"},
    ),
    "infinity": (
        post("/v1/runs", b'{"workflow": "order", "version": "1", "input": {"price": 1e999}}'),
        {"body": "body.input.price is inf"},
    ),
    "number that a double cannot hold": (
        post("/v1/runs", {**GOOD_START, "input": [2**53 + 1]}),
        {"body": "body.input[0] is an integer beyond ±2^53: use str"},
    ),
    "half a surrogate pair": (
        post("/v1/runs", {**GOOD_START, "input": "\ud83d"}),
        {"body": "body.input holds half of a surrogate pair, which is not Unicode text"},
    ),
    "bottomless body": (
        post("/v1/runs", b'{"workflow": "order", "version": "1", "input": ' + b"[" * 4_000 + b"]" * 4_000 + b"}"),
        {"body": "body is inside more than 100 lists and dicts, or in itself"},
    ),
    "wrong version": (
        HttpRequest("GET", "/health", headers={"aiki-version": "latest"}),
        {"Aiki-Version": "should be major.minor, like 1.4"},
    ),
}


def problem(status: int, code: str, title: str, detail: str, **members: Json) -> dict[str, Json]:
    standard: dict[str, Json] = {
        "type": f"urn:aiki-push:{code}",
        "title": title,
        "status": status,
        "detail": detail,
        "code": code,
    }
    return {**standard, **members}


def wire_to(service: SampleService) -> Wire:
    return Wire(service, namespace="blue", entropy=SequentialEntropy(), max_body_bytes=MAX_BODY_BYTES)


@pytest.mark.parametrize("door", DOORS.values(), ids=DOORS)
@pytest.mark.parametrize(("request_", "faults"), BAD_INPUT.values(), ids=BAD_INPUT)
def test_bad_input_is_answered_with_the_fields_at_fault_and_goes_no_further(
    door: Door, request_: HttpRequest, faults: dict[str, str]
) -> None:
    service = SampleService()
    response = door(wire_to(service), request_)
    detail = f"{len(faults)} field{'s are' if len(faults) > 1 else ' is'} wrong: {', '.join(faults)}"
    errors: list[Json] = [{"field": field, "message": message} for field, message in faults.items()]
    assert (response.status, json.loads(response.body), service.calls) == (
        400,
        problem(400, "invalid_request", "Invalid request", detail, errors=errors),
        [],
    )
    assert response.headers == {"content-type": "application/problem+json", "cache-control": "no-store"}


OTHER_PROBLEMS: Mapping[str, tuple[HttpRequest, dict[str, Json], dict[str, str]]] = {
    "oversized body": (
        post("/v1/runs", {**GOOD_START, "input": "x" * MAX_BODY_BYTES}),
        problem(
            413, "payload_too_large", "Payload too large", "the body is over 10000 bytes", field="body", max_bytes=MAX_BODY_BYTES
        ),
        {},
    ),
    "unknown path": (
        HttpRequest("GET", "/v2/runs"),
        problem(404, "not_found", "Not found", "no operation has this path"),
        {},
    ),
    "slash at the end": (
        HttpRequest("GET", f"{RUN_PATH}/"),
        problem(404, "not_found", "Not found", "no operation has this path"),
        {},
    ),
    "wrong method": (
        HttpRequest("PATCH", "/v1/endpoints/a"),
        problem(
            405, "method_not_allowed", "Method not allowed", "this path takes DELETE, GET, PUT", allowed=["DELETE", "GET", "PUT"]
        ),
        {"allow": "DELETE, GET, PUT"},
    ),
    "distant version": (
        HttpRequest("GET", "/health", headers={"aiki-version": "1.0"}),
        problem(
            400,
            "unsupported_version",
            "Unsupported version",
            "the client is of version 1.0, the server of 0.1: upgrade the server",
        ),
        {},
    ),
}


@pytest.mark.parametrize("door", DOORS.values(), ids=DOORS)
@pytest.mark.parametrize(("request_", "document", "headers"), OTHER_PROBLEMS.values(), ids=OTHER_PROBLEMS)
def test_a_request_without_an_operation_is_answered_with_a_problem(
    door: Door, request_: HttpRequest, document: dict[str, Json], headers: dict[str, str]
) -> None:
    service = SampleService()
    response = door(wire_to(service), request_)
    assert (response.status, json.loads(response.body), service.calls) == (document["status"], document, [])
    assert response.headers == {"content-type": "application/problem+json", "cache-control": "no-store", **headers}


@pytest.mark.parametrize("door", DOORS.values(), ids=DOORS)
def test_bytes_that_are_not_utf_8_are_refused(door: Door) -> None:
    service = SampleService()
    response = door(wire_to(service), post("/v1/runs", b'{"workflow": "\xff"}'))
    message = "body is not UTF-8 at byte 14"
    assert (response.status, json.loads(response.body)["errors"]) == (400, [{"field": "body", "message": message}])
    assert service.calls == []


@pytest.mark.parametrize("door", DOORS.values(), ids=DOORS)
def test_a_cursor_that_the_service_refuses_is_answered_like_any_other_field(door: Door) -> None:
    error = InvalidRequest("1 field is wrong: cursor", errors=[{"field": "cursor", "message": "is not of this server"}])
    service = SampleService(raising(error))
    response = door(wire_to(service), HttpRequest("GET", f"{RUN_PATH}/history", "cursor=f.orged"))
    assert json.loads(response.body) == problem(
        400,
        "invalid_request",
        "Invalid request",
        "1 field is wrong: cursor",
        errors=[{"field": "cursor", "message": "is not of this server"}],
    )
    assert service.calls == [("blue", GetHistory(run_id=RUN_ID, cursor="f.orged"))]


@pytest.mark.parametrize("door", DOORS.values(), ids=DOORS)
@pytest.mark.parametrize(("operation", "answer"), SAMPLES.values(), ids=SAMPLES)
def test_every_operation_and_its_answer_arrive_as_they_were(door: Door, operation: Operation[Any], answer: object) -> None:
    service = SampleService(answer)

    async def main() -> object:
        transport = DoorTransport(door, wire_to(service))
        api = HttpApi("http://127.0.0.1", clock=FakeClock(), entropy=SequentialEntropy(), transport=transport)
        try:
            return await api.call(operation)
        finally:
            await api.close()

    # By their text too, since 1.0 equals 1 and True.
    assert repr(asyncio.run(main())) == repr(answer)
    [(namespace, received)] = service.calls
    assert (namespace, repr(received), received) == ("blue", repr(operation), operation)
    assert received.model_fields_set == operation.model_fields_set
