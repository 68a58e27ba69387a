"""From an HTTP request to an operation: collected from path, query and body, and checked field by field."""

from collections.abc import Mapping, Sequence
from typing import Literal
from urllib.parse import parse_qs

from pydantic import ValidationError
from pydantic_core import to_json

from aiki_push.adapters.transport.field_faults import Fault, faults_of, invalid_request
from aiki_push.adapters.transport.http_messages import HttpRequest
from aiki_push.adapters.transport.routes import AnyOperation, Route, takes_body
from aiki_push.domain.canonical_json import NotJson, parse_json
from aiki_push.domain.values import Json

_MAX_QUERY_FIELDS = 100


def decode(route: Route, request: HttpRequest, *, ignore_unknown: bool) -> AnyOperation:
    """The operation that `request` asks for. `ignore_unknown` lets fields pass that the operation does not have.

    Raises:
        InvalidRequest: with every field at fault.
    """
    query = _parsed_query(request.query)
    if takes_body(route.operation):
        values, faults = _parsed_body(request.body), [] if ignore_unknown else [Fault(name, "is unknown") for name in query]
    else:
        values, faults = {name: texts[-1] for name, texts in query.items()}, _query_faults(query, request.body)
    faults += [Fault(name, "belongs in the path alone") for name in route.path_values if name in values]
    values.update(route.path_values)
    try:
        operation = _validated(route.operation, values, "ignore" if ignore_unknown else "forbid")
    except ValidationError as error:
        raise invalid_request(faults + faults_of(error, values)) from None
    if faults:
        raise invalid_request(faults)
    return operation


def _validated(operation: type[AnyOperation], values: Mapping[str, Json], unknown: Literal["ignore", "forbid"]) -> AnyOperation:
    if not takes_body(operation):
        return operation.model_validate_strings(values, extra=unknown)
    # Strict, so that neither "5" nor true is a number; as JSON, since only there an array is strictly a tuple.
    return operation.model_validate_json(to_json(values), strict=True, extra=unknown)


def _parsed_query(query: str) -> dict[str, list[str]]:
    try:
        return parse_qs(query, keep_blank_values=True, errors="strict", max_num_fields=_MAX_QUERY_FIELDS)
    except ValueError:
        message = f"is not percent-encoded UTF-8 of at most {_MAX_QUERY_FIELDS} parameters"
        raise invalid_request([Fault("query", message)]) from None


def _query_faults(query: Mapping[str, Sequence[str]], body: bytes) -> list[Fault]:
    repeated = [Fault(name, "is given more than once") for name, texts in query.items() if len(texts) > 1]
    return [*repeated, Fault("body", "is not taken here: use query parameters")] if body else repeated


def _parsed_body(body: bytes) -> dict[str, Json]:
    """The members of the JSON object `body`; none for no body at all."""
    if not body:
        return {}
    try:
        values = parse_json(body, at="body")
    except NotJson as error:
        raise invalid_request([Fault("body", str(error))]) from None
    if not isinstance(values, dict):
        raise invalid_request([Fault("body", "should be a JSON object")])
    return values
