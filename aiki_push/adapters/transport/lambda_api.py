"""The API's door in AWS Lambda: HTTP APIs of API Gateway (payload format 2.0) and Function URLs, which send the same."""

import re
from base64 import b64decode
from collections.abc import Callable, Mapping
from typing import Any

from aws_lambda_powertools.event_handler import APIGatewayHttpResolver, Response
from aws_lambda_powertools.event_handler.exceptions import NotFoundError
from aws_lambda_powertools.utilities.typing import LambdaContext

from aiki_push.adapters.transport.field_faults import Fault, invalid_request
from aiki_push.adapters.transport.http_messages import HttpRequest, HttpResponse
from aiki_push.adapters.transport.problems import problem_response
from aiki_push.adapters.transport.wire import Wire
from aiki_push.ports.api.catalogue import CATALOGUE

Event = Mapping[str, Any]
"""AWS, "Create AWS Lambda proxy integrations for HTTP APIs in API Gateway", payload format version 2.0."""


def lambda_api(wire: Wire) -> Callable[[Event, LambdaContext], dict[str, Any]]:
    """A handler of events. It serves one at a time, as Lambda calls it: the resolver keeps the event in one place a process."""
    app = APIGatewayHttpResolver()

    def answer(**_path_values: str) -> Response[str]:
        return _to_powertools(_answer(wire, app.current_event.raw_event))

    def answer_elsewhere(_error: NotFoundError) -> Response[str]:
        return answer()

    for operation in CATALOGUE:
        app.route(re.sub(r"{(\w+)}", r"<\1>", operation.path), method=operation.method)(answer)
    app.not_found(answer_elsewhere)
    return app.resolve


def _answer(wire: Wire, event: Event) -> HttpResponse:
    try:
        body = _body(event)
    except ValueError:
        return problem_response(invalid_request([Fault("body", "is not base64")]))
    request = HttpRequest(
        method=event["requestContext"]["http"]["method"],
        path=_path(event),
        query=event.get("rawQueryString", ""),
        headers={name.lower(): value for name, value in event.get("headers", {}).items()},
        body=body,
    )
    return wire.handle(request)


def _path(event: Event) -> str:
    """The path below the stage: a named stage is its first part, unless a domain of one's own is mapped to the stage.

    HTTP APIs have already decoded it, Function URLs have not. A second decoding does no harm: no field of a path may hold a `%`.
    """
    path: str = event["rawPath"]
    return path.removeprefix(f"/{event['requestContext']['stage']}")


def _body(event: Event) -> bytes:
    body: str = event.get("body") or ""
    if event.get("isBase64Encoded"):
        return b64decode(body, validate=True)
    return body.encode("utf-8", "surrogatepass")  # half a surrogate pair is the wire's to refuse


def _to_powertools(response: HttpResponse) -> Response[str]:
    # As text: bytes would be sent in base64, a third larger.
    return Response(status_code=response.status, body=response.body.decode(), headers=dict(response.headers))
