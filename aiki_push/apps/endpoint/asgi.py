"""An endpoint as an ASGI app (https://asgi.readthedocs.io, HTTP and lifespan protocols 2.x)."""

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, TypeAlias

from aiki_push.apps.endpoint.messages import MAX_BODY_BYTES, Handle, PushAnswer, PushRequest, joined_headers
from aiki_push.domain.errors import SettingsError

Scope: TypeAlias = MutableMapping[str, Any]
Message: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Message]]
Send: TypeAlias = Callable[[Message], Awaitable[None]]


class AsgiDoor:
    """The app. Each push is handled in a task of its own, so that a caller who hangs up does not end the segment.

    When the server shuts down, segments get `shutdown_ms` to end. What then goes on ends with the event loop, and the server
    that owns the runs hands them to another executor.
    """

    def __init__(self, handle: Handle, *, shutdown_ms: int = 5_000) -> None:
        self._handle = handle
        self._shutdown_ms = shutdown_ms
        self._segments: set[asyncio.Task[PushAnswer]] = set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one connection. Raises SettingsError: it is neither HTTP nor the server's lifespan."""
        if scope["type"] == "http":
            await self._answer(scope, receive, send)
        elif scope["type"] == "lifespan":
            await self._live(receive, send)
        else:
            raise SettingsError(f"an endpoint answers HTTP requests, and this is {scope['type']}")

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        body = await _body(receive)
        if body is None:
            return
        headers = joined_headers((name.decode("latin-1"), value.decode("latin-1")) for name, value in scope["headers"])
        segment = asyncio.create_task(self._handle(PushRequest(scope["method"], headers, body)))
        self._segments.add(segment)
        segment.add_done_callback(self._segments.discard)
        answer = await asyncio.shield(segment)
        raw_headers = [(name.encode(), value.encode()) for name, value in answer.all_headers().items()]
        try:
            await send({"type": "http.response.start", "status": answer.status, "headers": raw_headers})
            await send({"type": "http.response.body", "body": answer.text().encode()})
        except OSError:
            return  # the caller hung up; it learns the outcome from the run

    async def _live(self, receive: Receive, send: Send) -> None:
        while True:
            message = await receive()
            if message["type"] == "lifespan.shutdown" and self._segments:
                await asyncio.wait(self._segments, timeout=self._shutdown_ms / 1_000)
            await send({"type": f"{message['type']}.complete"})
            if message["type"] == "lifespan.shutdown":
                return


async def _body(receive: Receive) -> bytes | None:
    """The body, as far as it matters; None where the caller hung up before its end."""
    body = bytearray()
    while len(body) <= MAX_BODY_BYTES:
        message = await receive()
        if message["type"] == "http.disconnect":
            return None
        body += message.get("body", b"")
        if not message.get("more_body", False):
            break
    return bytes(body)
