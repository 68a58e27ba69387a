"""One wire, three doors: the same request gets the same answer through each."""

import asyncio
import json
from collections.abc import Mapping
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
from tests.integration.bad_commands import BAD_COMMANDS
from tests.integration.bad_requests import BAD_INPUT, GOOD_START, RUN_PATH, post
from tests.unit.adapters.transport.sample_service import SampleService, raising
from tests.unit.adapters.transport.sample_values import RUN_ID
from tests.unit.adapters.transport.samples import SAMPLES

MAX_BODY_BYTES = 10_000


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
@pytest.mark.parametrize(("request_", "faults"), [*BAD_INPUT.values(), *BAD_COMMANDS.values()], ids=[*BAD_INPUT, *BAD_COMMANDS])
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
