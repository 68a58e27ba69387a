"""ApiErrors as problem documents (RFC 9457), and back."""

import json

from aiki_push.adapters.transport.http_messages import HttpResponse, json_response
from aiki_push.domain.canonical_json import NotJson, parse_json
from aiki_push.domain.errors import API_ERRORS, ApiError, MethodNotAllowed

RETRY_AFTER_S = 1
"""What 429 and 503 ask for. Both pass quickly: a request ends, a throttled table catches up."""

_MEMBERS = frozenset({"type", "title", "status", "detail", "code", "self"})
"""Members of every document, and a name no constructor takes as a field. An error's field of such a name does not travel."""


def problem_response(error: ApiError) -> HttpResponse:
    """The answer that says `error`: its fields are members of the document, beside the standard ones."""
    document = {
        **error.fields,
        "type": f"urn:aiki-push:{error.code}",
        "title": error.title,
        "status": error.http_status,
        "detail": error.detail,
        "code": error.code,
    }
    headers = {}
    if error.http_status in (429, 503):
        headers["retry_after"] = str(RETRY_AFTER_S)
    if isinstance(error, MethodNotAllowed):
        headers["allow"] = ", ".join(str(method) for method in _list(error.fields.get("allowed")))
    return json_response(error.http_status, json.dumps(document).encode(), "application/problem+json", **headers)


def error_of_problem(body: bytes) -> ApiError | None:
    """The error that a server raised, with its detail and fields; None where `body` is no problem document of ours."""
    try:
        document = parse_json(body)
    except NotJson:
        return None
    if not isinstance(document, dict):
        return None
    code, detail = document.get("code"), document.get("detail")
    if not (isinstance(code, str) and isinstance(detail, str) and code in API_ERRORS):
        return None
    return API_ERRORS[code](detail, **{name: value for name, value in document.items() if name not in _MEMBERS})


def _list(value: object) -> list[object]:
    return value if isinstance(value, list) else []
