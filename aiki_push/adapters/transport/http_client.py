"""The API over HTTP, with repetitions: every request is safe to repeat, so a lost answer costs time and nothing else."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import TypeVar

import httpx
from pydantic import ValidationError

from aiki_push.adapters.transport.encoding import Encoded, encode
from aiki_push.adapters.transport.problems import error_of_problem
from aiki_push.adapters.transport.versions import API_VERSION, VERSION_HEADER, version_text
from aiki_push.domain.errors import AikiError, ServerUnreachable, SettingsError
from aiki_push.ports.api.operation import Operation
from aiki_push.ports.api.runs import WaitRun
from aiki_push.ports.clock import Clock
from aiki_push.ports.entropy import Entropy

R = TypeVar("R")

TIMEOUT_MS = 10_000
RETRY_BUDGET_MS = 20_000

_RETRIED_STATUSES = frozenset({429, 502, 503, 504})
_RETRIED_ERRORS = (httpx.TimeoutException, httpx.NetworkError, httpx.RemoteProtocolError)

_FIRST_WAIT_MS = 100
_LONGEST_WAIT_MS = 5_000
_LONGEST_RETRY_AFTER_MS = 10_000

_LIMITS = httpx.Limits(max_connections=256, max_keepalive_connections=64, keepalive_expiry=4)
"""Idle connections are dropped before servers drop them (uvicorn after 5 s), so that a request rarely meets a closed one."""


@dataclass(frozen=True, slots=True)
class _Setback:
    """An attempt that may be repeated, and the least time before it; `error` is raised if it was the last one."""

    error: AikiError
    retry_after_ms: int = 0


class HttpApi:
    """An Api that calls the server at `base_url`, which may end in a path.

    An attempt takes up to `timeout_ms` (WaitRun: longer by its own `timeout_ms`). Network errors, 429, 502, 503 and 504 are
    retried after a random wait from a range that doubles (full jitter), on top of what Retry-After asks for, as long as the next
    attempt begins within `retry_budget_ms` of the first. `headers` go with every request and are never shown.
    """

    def __init__(
        self,
        base_url: str,
        *,
        clock: Clock,
        entropy: Entropy,
        timeout_ms: int = TIMEOUT_MS,
        retry_budget_ms: int = RETRY_BUDGET_MS,
        transport: httpx.AsyncBaseTransport | None = None,
        headers: Mapping[str, str] | None = None,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        """Open nothing yet.

        Raises:
            SettingsError: `base_url` is not an http or https URL, or has credentials, a query or a fragment.
        """
        self._base_url = _checked(base_url)
        self._clock = clock
        self._entropy = entropy
        self._timeout_ms = timeout_ms
        self._retry_budget_ms = retry_budget_ms
        self._sleep = sleep
        own_headers = {VERSION_HEADER: version_text(API_VERSION)}
        self._client = httpx.AsyncClient(transport=transport, headers={**(headers or {}), **own_headers}, limits=_LIMITS)

    async def call(self, operation: Operation[R]) -> R:
        """Perform `operation`, repeating it where the answer is lost.

        Raises:
            ApiError: the class, detail and fields that the server raised.
            ServerUnreachable: no answer within the time budget, or one that is not this API's.
        """
        request = self._request(operation, encode(operation))
        started_ms = self._clock.monotonic_ms()
        attempts = 0
        while isinstance(reply := await self._attempt(request), _Setback):
            wait_ms = reply.retry_after_ms + self._jitter_ms(attempts)
            if self._clock.monotonic_ms() - started_ms + wait_ms > self._retry_budget_ms:
                raise reply.error
            await self._sleep(wait_ms / 1_000)
            attempts += 1
        return _answer(operation, reply)

    async def close(self) -> None:
        """Close the connections."""
        await self._client.aclose()

    def _request(self, operation: Operation[R], encoded: Encoded) -> httpx.Request:
        extra_ms = operation.timeout_ms if isinstance(operation, WaitRun) else 0
        return self._client.build_request(
            operation.method,
            self._base_url + encoded.target,
            content=encoded.body,
            headers={"content-type": "application/json"} if encoded.body is not None else None,
            timeout=httpx.Timeout(self._timeout_ms / 1_000, read=(self._timeout_ms + extra_ms) / 1_000),
        )

    async def _attempt(self, request: httpx.Request) -> httpx.Response | _Setback:
        try:
            response = await self._client.send(request)
        except _RETRIED_ERRORS as error:
            return _Setback(
                ServerUnreachable(f"{_place(request)} gave no answer ({_reason(error)}): repeating the request is safe")
            )
        except httpx.RequestError as error:
            # Its message may show a header or what came back.
            raise ServerUnreachable(f"{_place(request)} could not be asked ({type(error).__name__})") from None
        if response.status_code in _RETRIED_STATUSES:
            return _Setback(_error(response), _retry_after_ms(response))
        return response

    def _jitter_ms(self, attempts: int) -> float:
        return self._entropy.fraction() * min(_LONGEST_WAIT_MS, _FIRST_WAIT_MS << min(attempts, 16))


def _checked(base_url: str) -> str:
    try:
        url = httpx.URL(base_url)
    except httpx.InvalidURL:
        url = httpx.URL("")
    if url.scheme not in ("http", "https") or not url.host or url.userinfo or url.query or url.fragment:
        raise SettingsError(
            "the server's URL should be like https://api.example.com or http://127.0.0.1:8080; credentials go into headers"
        )
    return base_url.rstrip("/")


def _answer(operation: Operation[R], response: httpx.Response) -> R:
    if response.status_code != 200:
        raise _error(response)
    try:
        answer: R = operation.answer.validate_json(response.content)
    except ValidationError:
        raise ServerUnreachable(f"{_place(response.request)} answered 200 with something else than its answer") from None
    return answer


def _error(response: httpx.Response) -> AikiError:
    """The error in a problem document; the body of anything else is left alone, nobody knows what it holds."""
    unknown = f"{_place(response.request)} answered {response.status_code} without an error that this client knows"
    return error_of_problem(response.content) or ServerUnreachable(unknown)


def _retry_after_ms(response: httpx.Response) -> int:
    """What the server asks for, within bounds. Dates, the other form of Retry-After, count as nothing."""
    text = response.headers.get("retry-after", "")
    return min(int(text) * 1_000, _LONGEST_RETRY_AFTER_MS) if text.isdecimal() and len(text) < 10 else 0


def _place(request: httpx.Request) -> str:
    return f"{request.method} {request.url.path} at {request.url.host}"


def _reason(error: httpx.TransportError) -> str:
    # The message of other errors may quote what came back.
    return f"{type(error).__name__}: {error}" if isinstance(error, httpx.ConnectError) else type(error).__name__
