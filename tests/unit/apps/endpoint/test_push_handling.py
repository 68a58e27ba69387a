import json
import logging
from collections.abc import Mapping

import pytest

from aiki_push.apps.endpoint.messages import PushAnswer, PushRequest
from aiki_push.domain.errors import (
    AikiError,
    InvalidToken,
    NotFound,
    ServerUnreachable,
    SettingsError,
    StorageUnavailable,
    Unauthenticated,
)
from aiki_push.domain.values import Json
from aiki_push.testing import FAKE_NOW
from tests.unit.apps.endpoint.push_examples import (
    AUDIENCE,
    BODY,
    DATA,
    OTHER_SECRET,
    PUBLIC,
    RUN_ID,
    SECRET,
    Executions,
    handler,
    push,
    signed,
)

MAX_BODY = 64 * 1024
NOW_S = FAKE_NOW // 1_000

UNAUTHENTICATED = PushAnswer(401, {"code": "unauthenticated"})
COMPLETED = PushAnswer(200, {"outcome": "completed"})


def body(**changes: Json) -> bytes:
    """The body of a push to somebody else, of an unknown version, with `changes` to it all."""
    data = {**json.loads(BODY)["data"], "audience": "somebody-else", "version": "9.9.9"}
    return json.dumps({**json.loads(BODY), "data": data, **changes}).encode()


def with_data(**changes: Json) -> bytes:
    return json.dumps({**json.loads(BODY), "data": {**json.loads(BODY)["data"], **changes}}).encode()


async def answer_to(request: PushRequest) -> PushAnswer:
    """The answer of an endpoint that expects never to execute anything."""
    executions = Executions(ServerUnreachable("and it would fail"))
    answered = await handler(executions).handle(request)
    assert executions.asked == []
    return answered


TOO_LARGE_AND_NO_JSON = b"x" * (MAX_BODY + 1)
NO_JSON = b"x" * MAX_BODY

# Each row passes the checks above it, and fails its own and everything below it: the answer shows which check came first.
IN_ORDER: Mapping[str, tuple[PushRequest, int, str]] = {
    "another method": (push(TOO_LARGE_AND_NO_JSON, method="GET", headers={}), 405, "method_not_allowed"),
    "too large": (push(TOO_LARGE_AND_NO_JSON, headers={}), 413, "payload_too_large"),
    "no headers": (push(NO_JSON, headers={}), 401, "unauthenticated"),
    "too old": (push(NO_JSON, headers=signed(NO_JSON, secret=OTHER_SECRET, at_s=NOW_S - 31)), 401, "unauthenticated"),
    "not signed": (push(NO_JSON, headers=signed(NO_JSON, secret=OTHER_SECRET)), 401, "unauthenticated"),
    "no JSON": (push(NO_JSON), 400, "invalid_request"),
    "another shape": (push(body(v=2)), 400, "invalid_request"),
    "another audience": (push(body()), 401, "unauthenticated"),
    "unknown version": (push(with_data(version="9.9.9")), 404, "version_not_registered"),
}


@pytest.mark.parametrize("row", IN_ORDER)
async def test_the_checks_are_made_in_the_order_of_the_design(row: str) -> None:
    request, status, code = IN_ORDER[row]
    answered = await answer_to(request)
    assert (answered.status, answered.body["code"]) == (status, code)


async def test_after_the_last_check_the_run_is_claimed_at_the_pushed_revision() -> None:
    executions = Executions()
    assert await handler(executions).handle(push()) == COMPLETED
    assert executions.asked == [(RUN_ID, 7)]


@pytest.mark.parametrize("method", ["GET", "HEAD", "PUT", "PATCH", "DELETE", "OPTIONS", "post", ""])
async def test_only_post_is_allowed(method: str) -> None:
    assert await answer_to(push(method=method)) == PushAnswer(405, {"code": "method_not_allowed"}, {"allow": "POST"})


async def test_a_body_of_64_kb_is_read_and_one_byte_more_is_not() -> None:
    padded = BODY[:-1] + b" " * (MAX_BODY - len(BODY)) + b"}"
    executions = Executions()

    assert await handler(executions).handle(push(padded)) == COMPLETED
    assert await handler(executions).handle(push(padded + b" ")) == PushAnswer(413, {"code": "payload_too_large"})
    assert executions.asked == [(RUN_ID, 7)]


@pytest.mark.parametrize(
    ("headers", "level", "line"),
    [
        (signed() | {"webhook-id": "msg_2"}, "WARNING", "push refused: signature: "),
        (signed(BODY + b" "), "WARNING", "push refused: signature: "),
        (signed(secret=OTHER_SECRET), "WARNING", "push refused: signature: "),
        (signed(at_s=NOW_S - 31), "INFO", "push refused: expired: "),
        (signed(at_s=NOW_S + 31), "INFO", "push refused: expired: "),
        (signed(at_s=NOW_S - 31, secret=OTHER_SECRET), "WARNING", "push refused: timestamp: "),
        ({}, "WARNING", "push refused: headers: webhook-id is missing."),
        (signed() | {"webhook-timestamp": "yesterday"}, "WARNING", "push refused: headers: webhook-timestamp is malformed"),
        (signed() | {"webhook-signature": "v1a"}, "WARNING", "push refused: headers: webhook-signature is malformed"),
    ],
)
async def test_a_push_that_is_not_authentic_learns_nothing_and_one_log_line_says_why(
    headers: dict[str, str], level: str, line: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    assert await answer_to(push(headers=headers)) == UNAUTHENTICATED
    [record] = caplog.records
    assert record.levelname == level
    assert record.getMessage().startswith(line)
    for secret in (SECRET, OTHER_SECRET, PUBLIC):
        assert secret.partition("_")[2] not in caplog.text
    assert signed()["webhook-signature"] not in caplog.text


@pytest.mark.parametrize("skew_s", [-120, -31, -30, -1, 0, 1, 30, 31, 120])
async def test_a_push_may_be_as_far_from_the_clock_as_the_tolerance_in_either_direction(skew_s: int) -> None:
    answered = await handler(Executions()).handle(push(headers=signed(at_s=NOW_S + skew_s)))
    assert answered == (COMPLETED if abs(skew_s) <= 30 else UNAUTHENTICATED)


@pytest.mark.parametrize("audience", [None, "", "orders", "orders-eu2", "Orders-EU"])
async def test_a_push_for_another_endpoint_is_refused_like_an_unsigned_one(
    audience: str | None, caplog: pytest.LogCaptureFixture
) -> None:
    assert await answer_to(push(with_data(audience=audience))) == UNAUTHENTICATED
    [record] = caplog.records
    assert record.getMessage() == f"push refused: audience: it is meant for {audience!r}, and this endpoint is {AUDIENCE!r}"


@pytest.mark.parametrize("audience", [None, "somebody-else"])
async def test_an_endpoint_without_a_name_takes_pushes_for_any(audience: str | None) -> None:
    executions = Executions()
    assert await handler(executions, audience=None).handle(push(with_data(audience=audience))) == COMPLETED


@pytest.mark.parametrize(("workflow", "version"), [("order", "1.0.1"), ("Order", "1.0.0"), ("refund", "1.0.0"), ("order", "1.0")])
async def test_a_version_that_is_not_registered_is_declined(workflow: str, version: str) -> None:
    answered = await answer_to(push(with_data(workflow=workflow, version=version)))
    assert answered == PushAnswer(404, {"code": "version_not_registered"})


async def test_a_signed_body_of_another_shape_is_told_which_fields_are_at_fault() -> None:
    answered = await answer_to(push(with_data(run_id="../../x", revision="7")))
    assert answered.status == 400
    errors = answered.body["errors"]
    assert isinstance(errors, list)
    assert [error["field"] for error in errors if isinstance(error, dict)] == ["data.run_id", "data.revision"]
    assert "../../x" not in answered.text()


@pytest.mark.parametrize(
    "bad", [b"", b"\xff\xfe", b"null", b"[]", b'"x"', b"{}", b"{" * 60_000, b'{"v":NaN}', BODY + b"x", BODY[:-1], b"\x00" * 100]
)
async def test_a_signed_body_that_is_no_push_is_a_bad_request(bad: bytes) -> None:
    answered = await answer_to(push(bad))
    assert (answered.status, answered.body["code"]) == (400, "invalid_request")
    assert json.loads(answered.text()) == answered.body


async def test_an_insecure_endpoint_takes_unsigned_pushes_and_makes_every_other_check() -> None:
    executions = Executions()
    insecure = handler(executions, is_signed=False)
    assert await insecure.handle(push(headers={})) == COMPLETED
    assert (await insecure.handle(push(body(), headers={}))).status == 401
    assert (await insecure.handle(push(b"{}", headers={}))).status == 400
    assert (await insecure.handle(push(headers={}, method="GET"))).status == 405
    assert executions.asked == [(RUN_ID, 7)]


SETTLED = ["completed", "failed", "retrying", "parked", "yielded", "released", "stalled", "stopped", "lost"]


@pytest.mark.parametrize("outcome", SETTLED)
async def test_a_settled_segment_is_answered_by_its_outcome(outcome: str) -> None:
    answered = await handler(Executions(outcome)).handle(push())
    assert answered == PushAnswer(200, {"outcome": outcome})
    assert answered.text() == f'{{"outcome":"{outcome}"}}'
    assert answered.all_headers() == {"content-type": "application/json", "cache-control": "no-store"}


@pytest.mark.parametrize("reason", ["already_claimed", "not_queued"])
async def test_a_run_that_cannot_be_claimed_is_an_ordinary_answer(reason: str) -> None:
    assert await handler(Executions(reason)).handle(push()) == PushAnswer(200, {"outcome": "already_claimed"})


async def test_a_segment_that_was_abandoned_is_an_error() -> None:
    assert await handler(Executions("unsettled")).handle(push()) == PushAnswer(500, {"code": "unsettled"})


@pytest.mark.parametrize("error", [ServerUnreachable("no answer within 20 s"), StorageUnavailable("the table is throttled")])
async def test_a_server_that_cannot_be_reached_for_the_claim_is_an_endpoint_that_is_busy(
    error: AikiError, caplog: pytest.LogCaptureFixture
) -> None:
    assert await handler(Executions(error)).handle(push()) == PushAnswer(503, {"code": "server_unreachable"})
    [record] = caplog.records
    assert (record.levelname, record.getMessage()) == ("WARNING", f"run {RUN_ID} was not claimed: {error}")


@pytest.mark.parametrize(
    "error", [NotFound("no such run"), Unauthenticated("the key is unknown"), InvalidToken("forged"), SettingsError("too long")]
)
async def test_any_other_refusal_of_the_server_is_an_error_and_logged(error: AikiError, caplog: pytest.LogCaptureFixture) -> None:
    assert await handler(Executions(error)).handle(push()) == PushAnswer(500, {"code": "internal"})
    [record] = caplog.records
    assert (record.levelname, record.getMessage()) == ("ERROR", f"run {RUN_ID} was not executed: {error}")


async def test_a_fault_of_our_own_is_an_error_whose_message_is_neither_told_nor_logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    answered = await handler(Executions(ValueError("card 4111 1111"))).handle(push())
    assert answered == PushAnswer(500, {"code": "internal"})
    [record] = caplog.records
    assert record.getMessage().startswith(f"executing run {RUN_ID} raised ValueError at\n  File ")
    assert "4111" not in caplog.text


async def test_every_line_about_a_run_carries_its_id(caplog: pytest.LogCaptureFixture) -> None:
    for error in (ServerUnreachable("x"), NotFound("x"), ValueError("x")):
        await handler(Executions(error)).handle(push())
    assert [record.__dict__["aiki.run_id"] for record in caplog.records] == [DATA.run_id] * 3
