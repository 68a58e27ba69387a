"""The errors of operations as OpenAPI describes them: a schema for each error, a response for each group of one status."""

import re
from collections.abc import Mapping
from itertools import groupby
from typing import TypeAlias

from aiki_push.adapters.transport.json_schemas import COMPONENT, JsonObject
from aiki_push.adapters.transport.routes import AnyOperation
from aiki_push.domain.errors import (
    API_ERRORS,
    ApiError,
    InternalError,
    InvalidRequest,
    PayloadTooLarge,
    RateLimited,
    StorageUnavailable,
    UnsupportedVersion,
)

ErrorGroup: TypeAlias = tuple[type[ApiError], ...]
"""Errors with the same status that one operation can answer."""

EVERYWHERE = (InvalidRequest, UnsupportedVersion, PayloadTooLarge, RateLimited, InternalError, StorageUnavailable)
"""What any operation may answer: raised around the operations, not by them alone."""

_TEXT = {"type": "string"}
_FAULT = {"type": "object", "required": ["field", "message"], "properties": {"field": _TEXT, "message": _TEXT}}
_FIELDS: Mapping[type[ApiError], JsonObject] = {
    InvalidRequest: {"errors": {"type": "array", "items": _FAULT}},
    InternalError: {"reference": _TEXT},
}
"""What every error of a class has beside the members of every problem document."""

PROBLEM: JsonObject = {
    "description": "A problem document (RFC 9457). `code` is the error's stable name; further members are fields of the error.",
    "type": "object",
    "required": ["type", "title", "status", "detail", "code"],
    "properties": {"type": _TEXT, "title": _TEXT, "status": {"type": "integer"}, "detail": _TEXT, "code": _TEXT},
}


def errors_of(operation: type[AnyOperation]) -> Mapping[str, ErrorGroup]:
    """What `operation` may answer instead, by status: what its docstring names, and what any operation may."""
    words = set(re.findall(r"\w+", (operation.__doc__ or "").partition("Raises ")[2]))
    errors = [error for error in API_ERRORS.values() if error in EVERYWHERE or error.__name__ in words]
    errors.sort(key=lambda error: error.http_status)
    return {str(status): tuple(group) for status, group in groupby(errors, lambda error: error.http_status)}


def response_name(group: ErrorGroup) -> str:
    """The name of `group` among the components, like `InvalidRequestOrUnsupportedVersion`."""
    return "Or".join(error.__name__ for error in group)


def response_of(group: ErrorGroup) -> JsonObject:
    """The response that carries any error of `group`."""
    references = [{"$ref": COMPONENT + error.__name__} for error in group]
    schema = references[0] if len(references) == 1 else {"oneOf": references}
    response: JsonObject = {
        "description": " or ".join(error.title.lower() for error in group).capitalize(),
        "content": {"application/problem+json": {"schema": schema}},
    }
    if group[0].http_status in (429, 503):
        response["headers"] = {
            "Retry-After": {"description": "Seconds after which to ask again.", "required": True, "schema": {"type": "integer"}}
        }
    return response


def schema_of(error: type[ApiError]) -> JsonObject:
    """The problem document that says `error`."""
    fixed = {
        "type": {"const": f"urn:aiki-push:{error.code}"},
        "title": {"const": error.title},
        "status": {"const": error.http_status},
        "code": {"const": error.code},
    }
    fields = _FIELDS.get(error, {})
    return {
        "description": error.__doc__,
        "allOf": [{"$ref": f"{COMPONENT}Problem"}],
        "properties": {**fixed, **fields},
        **({"required": list(fields)} if fields else {}),
    }
