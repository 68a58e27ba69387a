"""The API's door for ASGI servers, such as the one on a developer's machine."""

import asyncio
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from urllib.parse import quote

from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Match
from starlette.types import Receive, Scope, Send

from aiki_push.adapters.transport.http_messages import HttpRequest, HttpResponse
from aiki_push.adapters.transport.wire import Wire

_SPARE_THREADS = 8
"""Beyond those at work: they tell further clients to come back, so that nobody stands in an invisible queue."""


def asgi_api(wire: Wire) -> Starlette:
    """An app that answers each request in a thread of its own, so one that waits keeps nobody else waiting.

    Its threads end with the lifespan. Which address it listens on is the server's to say.
    """
    threads = ThreadPoolExecutor(wire.max_concurrent_requests + _SPARE_THREADS, thread_name_prefix="aiki-api")

    @asynccontextmanager
    async def lifespan(_app: Starlette) -> AsyncIterator[None]:
        yield
        threads.shutdown(wait=False, cancel_futures=True)

    return Starlette(routes=[_Door(wire, threads)], lifespan=lifespan)


class _Door(BaseRoute):
    """A route of every HTTP request. Starlette's own would answer by themselves: other methods, and paths with a line break."""

    def __init__(self, wire: Wire, threads: ThreadPoolExecutor) -> None:
        self._wire = wire
        self._threads = threads

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        return (Match.FULL if scope["type"] == "http" else Match.NONE), {}

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            answer = await self._answer(Request(scope, receive))
        except ClientDisconnect:
            return
        await Response(answer.body, answer.status, dict(answer.headers))(scope, receive, send)

    async def _answer(self, request: Request) -> HttpResponse:
        body = bytearray()
        async for chunk in request.stream():
            body += chunk
            if len(body) > self._wire.max_body_bytes:
                return self._wire.too_large()
        exchange = HttpRequest(
            method=request.method,
            path=_raw_path(request.scope),
            query=_text(request.scope["query_string"]),
            headers={name: ", ".join(request.headers.getlist(name)) for name in request.headers},
            body=bytes(body),
        )
        return await asyncio.get_running_loop().run_in_executor(self._threads, self._wire.handle, exchange)


def _raw_path(scope: Scope) -> str:
    """The path as sent; a server may leave it out (ASGI, HTTP connection scope), and then what it decoded is encoded again."""
    raw: bytes | None = scope.get("raw_path")
    return _text(raw) if raw else quote(scope["path"])


def _text(raw: bytes) -> str:
    # What is not UTF-8 becomes half surrogate pairs, which the wire refuses.
    return raw.decode("utf-8", "surrogateescape")
