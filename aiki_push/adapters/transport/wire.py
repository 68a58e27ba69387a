"""The API as HTTP: find the operation, check the request, call the service, write the answer. No server in sight."""

import logging
import traceback
from threading import Semaphore

from aiki_push.adapters.transport.decoding import decode
from aiki_push.adapters.transport.http_messages import HttpRequest, HttpResponse, json_response
from aiki_push.adapters.transport.problems import problem_response
from aiki_push.adapters.transport.routes import Routes
from aiki_push.adapters.transport.versions import VERSION_HEADER, is_from_newer_client
from aiki_push.domain.errors import AikiError, ApiError, InternalError, PayloadTooLarge, RateLimited
from aiki_push.domain.ids import token_text
from aiki_push.ports.api.operation import Service
from aiki_push.ports.entropy import Entropy

MAX_BODY_BYTES = 3_000_000
"""A body is escaped into the event of a Lambda and may double there; an event ends at 6 MB (AWS, Lambda quotas)."""

MAX_CONCURRENT_REQUESTS = 64

_MAX_CAUSES = 10

_log = logging.getLogger(__name__)


class Wire:
    """What stands behind every door. Safe to call from any thread; each call takes one until it is answered.

    All requests are made within `namespace`. One process answers `max_concurrent_requests` at a time; more are told to come back.
    """

    def __init__(
        self,
        service: Service,
        *,
        namespace: str,
        entropy: Entropy,
        max_body_bytes: int = MAX_BODY_BYTES,
        max_concurrent_requests: int = MAX_CONCURRENT_REQUESTS,
    ) -> None:
        self.max_body_bytes = max_body_bytes
        self.max_concurrent_requests = max_concurrent_requests
        self._service = service
        self._namespace = namespace
        self._entropy = entropy
        self._routes = Routes()
        self._places = Semaphore(max_concurrent_requests)

    def handle(self, request: HttpRequest) -> HttpResponse:
        """The answer to `request`: an operation's, or a problem document. Raises nothing."""
        if not self._places.acquire(blocking=False):
            return problem_response(
                RateLimited(f"the server takes {self.max_concurrent_requests} at a time: retry after a moment")
            )
        try:
            return self._answer(request)
        finally:
            self._places.release()

    def too_large(self) -> HttpResponse:
        """The answer to a request whose body is over `max_body_bytes`, for doors that stop reading there."""
        detail = f"the body is over {self.max_body_bytes} bytes"
        return problem_response(PayloadTooLarge(detail, field="body", max_bytes=self.max_body_bytes))

    def _answer(self, request: HttpRequest) -> HttpResponse:
        name = "no operation"
        try:
            route = self._routes.find(request.method, request.path)
            name = route.operation.operation
            ignore_unknown = is_from_newer_client(request.headers.get(VERSION_HEADER.lower()))
            if len(request.body) > self.max_body_bytes:
                return self.too_large()
            operation = decode(route, request, ignore_unknown=ignore_unknown)
            answer = self._service.call(self._namespace, operation)
            return json_response(200, operation.answer.dump_json(answer, warnings="error"))
        except ApiError as error:
            return problem_response(error)
        except Exception as error:  # noqa: BLE001 - nothing is above but the door, which would answer in a format of its own
            return problem_response(self._internal_error(name, error))

    def _internal_error(self, name: str, error: Exception) -> InternalError:
        """Log the fault under a new reference. The log gets no message of a foreign exception: it may quote what was sent."""
        reference = token_text(self._entropy.token(12))
        _log.error("%s failed (reference %s)\n%s", name, reference, _anatomy(error))
        return InternalError(f"a fault of the server; its log has more at {reference}", reference=reference)


def _anatomy(error: BaseException | None, depth: int = _MAX_CAUSES) -> str:
    """The classes and stacks of an exception and what caused it, oldest first."""
    if error is None or depth == 0:
        return ""
    earlier = _anatomy(error.__cause__ or (None if error.__suppress_context__ else error.__context__), depth - 1)
    message = f": {error}" if isinstance(error, AikiError) else ""
    stack = "".join(traceback.format_tb(error.__traceback__))
    return f"{earlier}{stack}{type(error).__module__}.{type(error).__qualname__}{message}\n"
