import json

import pytest

from aiki_push.adapters.transport.problems import error_of_problem, problem_response
from aiki_push.domain.errors import API_ERRORS, ApiError, MethodNotAllowed


@pytest.mark.parametrize("kind", API_ERRORS.values())
def test_every_error_comes_back_as_it_went(kind: type[ApiError]) -> None:
    sent = kind('half a pair \ud83d, "quoted"', revision=7, errors=[{"field": "a"}], allowed=None)
    received = error_of_problem(json.dumps(json.loads(problem_response(sent).body)).encode().replace(b"\\ud83d", b"?"))
    assert received is not None
    assert (type(received), received.detail, received.fields) == (
        kind,
        'half a pair ?, "quoted"',
        {"revision": 7, "errors": [{"field": "a"}], "allowed": None},
    )


def test_a_refused_method_names_the_others_in_a_header() -> None:
    assert problem_response(MethodNotAllowed("no", allowed=["GET", "PUT"])).headers["allow"] == "GET, PUT"


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"<html>",
        b"[]",
        b"null",
        b'{"message": "Service Unavailable"}',
        b'{"code": "not_found"}',
        b'{"code": ["not_found"], "detail": ""}',
        b'{"code": "from_the_future", "detail": ""}',
        b'{"code": "not_found", "detail": NaN}',
        b"\xff",
    ],
)
def test_what_is_no_problem_document_is_none(body: bytes) -> None:
    assert error_of_problem(body) is None


def test_a_member_that_no_error_could_take_is_left_out() -> None:
    error = error_of_problem(b'{"code": "not_found", "detail": "gone", "self": 1, "status": 404, "id": "x"}')
    assert error is not None
    assert error.fields == {"id": "x"}
