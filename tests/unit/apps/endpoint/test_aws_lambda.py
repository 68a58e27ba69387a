import asyncio
import json
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from math import inf

import pytest

from aiki_push.apps.endpoint.aws_lambda import Event, LambdaDoor, read_event
from aiki_push.apps.endpoint.messages import PushAnswer, PushRequest
from aiki_push.domain.errors import InvalidRequest
from aiki_push.domain.push_message import encode_push
from aiki_push.testing import FAKE_NOW
from tests.unit.apps.endpoint.lambda_events import function_url, http_api, http_api_in_format_1, rest_api
from tests.unit.apps.endpoint.push_examples import AUDIENCE, BODY, DATA, RUN_ID, Executions, handler, signed

MakeEvent = Callable[..., Event]

SHAPES: dict[str, MakeEvent] = {
    "HTTP API": http_api,
    "HTTP API with a stage": partial(http_api, stage="prod"),
    "HTTP API, format 1.0": http_api_in_format_1,
    "REST API": rest_api,
    "Function URL": function_url,
}
AWKWARD = encode_push(DATA, FAKE_NOW).replace(
    b'"v":1', '"n":1.0,"note":"a & b < c > d \\u00e9 \u00e9\U0001f642","v":1,"v":1'.encode()
)

COMPLETED = {
    "statusCode": 200,
    "headers": {"content-type": "application/json", "cache-control": "no-store"},
    "body": '{"outcome":"completed"}',
    "isBase64Encoded": False,
}


@contextmanager
def door(executions: Executions) -> Iterator[LambdaDoor]:
    made = LambdaDoor(handler(executions).handle)
    try:
        yield made
    finally:
        made.close()


def as_sent(name: str) -> str:
    return name


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("is_base64", [True, False])
@pytest.mark.parametrize("spelling", [as_sent, str.lower, str.title, str.upper])
@pytest.mark.parametrize("body", [BODY, AWKWARD])
def test_a_signed_push_is_executed_however_it_is_wrapped(
    shape: str, is_base64: bool, spelling: Callable[[str], str], body: bytes
) -> None:
    executions = Executions()
    headers = {spelling(name): value for name, value in signed(body).items()}
    with door(executions) as made:
        assert made(SHAPES[shape](headers, body, is_base64=is_base64), None) == COMPLETED
    assert executions.asked == [(RUN_ID, 7)]


@pytest.mark.parametrize("shape", SHAPES)
def test_a_push_that_was_tampered_with_is_refused_however_it_is_wrapped(shape: str) -> None:
    executions = Executions()
    with door(executions) as made:
        answer = made(SHAPES[shape](signed(), BODY + b" "), None)
    assert (answer["statusCode"], answer["body"]) == (401, '{"code":"unauthenticated"}')
    assert executions.asked == []


@pytest.mark.parametrize("make", [http_api, rest_api])
def test_the_request_is_read_to_the_byte(make: MakeEvent) -> None:
    request = read_event(make({"Webhook-Id": "msg_1", "X-Other": "a, b"}, b'{"n":1.0}\r\n '))
    headers = {"webhook-id": "msg_1", "x-other": "a, b", "x-forwarded-proto": "https"}
    assert request == PushRequest("POST", headers, b'{"n":1.0}\r\n ')


@pytest.mark.parametrize("body", [b"", b"\xff\xfe\x00", b"\n", AWKWARD])
def test_a_body_in_base64_is_what_it_stands_for(body: bytes) -> None:
    assert read_event(rest_api({}, body, is_base64=True)).body == body
    assert read_event(http_api({}, body, is_base64=True)).body == body


@pytest.mark.parametrize("nothing", [{"body": None}, {"body": ""}, {}])
def test_an_event_without_a_body_or_headers_is_a_request_without_them(nothing: Event) -> None:
    for make in (http_api, rest_api):
        event = {name: value for name, value in make({}, b"").items() if name not in ("body", "headers", "multiValueHeaders")}
        assert read_event({**event, **nothing}) == PushRequest("POST", {}, b"")
    assert read_event({"httpMethod": "GET", "headers": None, "multiValueHeaders": None, "body": None}) == PushRequest("GET")


def test_a_header_that_was_sent_twice_is_joined_by_a_comma() -> None:
    twice = {"httpMethod": "POST", "headers": {"Webhook-Id": "b"}, "multiValueHeaders": {"Webhook-Id": ["a", "b"]}}
    in_two_cases = {"httpMethod": "POST", "headers": {"Webhook-Id": "a", "webhook-id": "b"}}
    for event in (twice, in_two_cases):
        assert read_event(event) == PushRequest("POST", {"webhook-id": "a,b"})


@pytest.mark.parametrize("name", ["webhook-id", "webhook-timestamp", "webhook-signature"])
def test_a_signed_header_that_was_sent_twice_is_refused(name: str) -> None:
    event = rest_api(signed(), BODY)
    event["multiValueHeaders"][name] *= 2
    with door(Executions()) as made:
        assert made(event, None)["statusCode"] == 401


@pytest.mark.parametrize("method", ["GET", "OPTIONS", "PUT"])
def test_another_method_is_told_which_is_allowed(method: str) -> None:
    of_http_api = http_api(signed(), BODY)
    of_http_api["requestContext"]["http"]["method"] = method
    with door(Executions()) as made:
        for event in (of_http_api, {**rest_api(signed(), BODY), "httpMethod": method}):
            answer = made(event, None)
            assert (answer["statusCode"], answer["headers"]["allow"]) == (405, "POST")


@pytest.mark.parametrize(
    "event",
    [
        {},
        {"source": "aws.events", "detail-type": "Scheduled Event"},
        {"Records": []},
        {"requestContext": None},
        {"requestContext": {}},
    ],
)
def test_an_event_that_is_no_http_request_is_a_bad_request_that_names_the_field(
    event: Event, caplog: pytest.LogCaptureFixture
) -> None:
    with door(Executions()) as made:
        answer = made(event, None)
    message = "is missing: only HTTP events carry pushes"
    field = "httpMethod or requestContext.http.method"
    assert answer["statusCode"] == 400
    assert json.loads(answer["body"]) == {
        "code": "invalid_request",
        "detail": f"{field} {message}",
        "errors": [{"field": field, "message": message}],
    }
    assert [record.getMessage() for record in caplog.records] == [f"the event is not a push: {field} {message}"]


@pytest.mark.parametrize("body", ["{}", "a", "YQ", "YQ==\n", "Y Q==", "\u00e9", "====="])
def test_a_body_that_is_not_the_base64_it_should_be_is_a_bad_request(body: str) -> None:
    with pytest.raises(InvalidRequest, match="^body is not base64$"):
        read_event({**rest_api({}, b""), "body": body, "isBase64Encoded": True})


def test_half_a_surrogate_pair_is_an_unsigned_body_and_no_crash() -> None:
    event = {**http_api(signed(), BODY), "body": "\ud800"}
    with door(Executions()) as made:
        assert made(event, None)["statusCode"] == 401


def test_invocations_share_an_event_loop_so_that_connections_can_be_kept() -> None:
    loops: list[asyncio.AbstractEventLoop] = []

    async def handle(_: PushRequest) -> PushAnswer:
        loops.append(asyncio.get_running_loop())
        return PushAnswer(200, {"n": len(loops)})

    made = LambdaDoor(handle)
    try:
        assert [made(rest_api({}, b""), None)["body"] for _ in range(3)] == ['{"n":1}', '{"n":2}', '{"n":3}']
        assert len(set(loops)) == 1
    finally:
        made.close()
        made.close()
    assert loops[0].is_closed()


def test_a_handler_that_was_never_called_has_nothing_to_close() -> None:
    LambdaDoor(handler(Executions()).handle).close()


def test_an_error_while_executing_is_an_answer_and_the_next_invocation_works(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    executions = Executions(ValueError("card 4111 1111"))
    with door(executions) as made:
        assert made(function_url(signed(), BODY), None)["statusCode"] == 500
        executions.end = "parked"
        assert made(function_url(signed(), BODY), None)["body"] == '{"outcome":"parked"}'
    assert "4111" not in caplog.text
    assert AUDIENCE not in caplog.text


class Invocation:
    """Lambda's context object, as far as it matters."""

    def get_remaining_time_in_millis(self) -> int:
        return 20_000


@pytest.mark.parametrize(("context", "left_ms"), [(Invocation(), 15_000), (None, inf)])
def test_a_segment_has_what_is_left_of_the_invocation_less_a_margin(context: object, left_ms: float) -> None:
    executions = Executions()
    made = LambdaDoor(handler(executions, deadline_margin_ms=5_000).handle)
    assert made(http_api(signed(), BODY), context)["statusCode"] == 200
    made.close()
    assert executions.left_ms == left_ms
