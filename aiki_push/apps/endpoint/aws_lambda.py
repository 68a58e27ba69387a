"""An endpoint as an AWS Lambda behind API Gateway (HTTP or REST API) or a Function URL.

Event shapes: AWS Lambda and Amazon API Gateway developer guides, "payload format version" 1.0 and 2.0; Function URLs send 2.0.
"""

import asyncio
import logging
from base64 import b64decode
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from math import inf
from typing import Any, TypeAlias

from aiki_push.apps.endpoint.messages import Handle, PushAnswer, PushRequest, invalid_answer, joined_headers
from aiki_push.domain.errors import InvalidRequest

Event: TypeAlias = Mapping[str, Any]

_log = logging.getLogger(__name__)


class LambdaDoor:
    """The Lambda's handler. One event loop is kept across its invocations, since pooled connections belong to their loop."""

    def __init__(self, handle: Handle) -> None:
        self._handle = handle
        self._runner: asyncio.Runner | None = None

    def __call__(self, event: Event, context: object) -> dict[str, Any]:
        """The answer to one event, once the segment has ended. `context` says how long the invocation lasts, where it is Lambda's."""
        if self._runner is None:
            self._runner = asyncio.Runner()
        answer = self._runner.run(self._answer(event, _left_ms(context)))
        return {
            "statusCode": answer.status,
            "headers": answer.all_headers(),
            "body": answer.text(),
            "isBase64Encoded": False,
        }

    def close(self) -> None:
        """End the event loop, and what still runs on it."""
        if self._runner is not None:
            self._runner.close()
            self._runner = None

    async def _answer(self, event: Event, left_ms: float) -> PushAnswer:
        try:
            request = replace(read_event(event), left_ms=left_ms)
        except InvalidRequest as error:
            _log.error("the event is not a push: %s", error)
            return invalid_answer(error)
        return await self._handle(request)


def _left_ms(context: object) -> float:
    remaining: Callable[[], int] | None = getattr(context, "get_remaining_time_in_millis", None)
    return inf if remaining is None else remaining()


def read_event(event: Event) -> PushRequest:
    """The request in an event. Raises InvalidRequest, naming the field: no HTTP event, or a body that should be base64."""
    method = event.get("httpMethod") or (event.get("requestContext") or {}).get("http", {}).get("method")
    if not isinstance(method, str):
        raise _invalid("httpMethod or requestContext.http.method", "is missing: only HTTP events carry pushes")
    return PushRequest(method, joined_headers(_headers(event)), _body(event))


def _headers(event: Event) -> Iterator[tuple[str, str]]:
    """Every header; format 1.0 has all values of a repeated one in `multiValueHeaders` only, and null for an empty mapping."""
    multiple: Mapping[str, list[str]] | None = event.get("multiValueHeaders")
    if multiple:
        return ((name, value) for name, values in multiple.items() for value in values)
    single: Mapping[str, str] | None = event.get("headers")
    return iter((single or {}).items())


def _body(event: Event) -> bytes:
    body: str = event.get("body") or ""
    if not event.get("isBase64Encoded"):
        return body.encode("utf-8", "surrogatepass")  # half a surrogate pair is no signed body, and is refused as such
    try:
        return b64decode(body, validate=True)
    except ValueError:
        raise _invalid("body", "is not base64") from None


def _invalid(field: str, message: str) -> InvalidRequest:
    return InvalidRequest(f"{field} {message}", errors=[{"field": field, "message": message}])
