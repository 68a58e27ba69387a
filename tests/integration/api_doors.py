"""The doors of the API, each as a function from a request to its answer."""

import asyncio
from base64 import b64encode
from collections.abc import Callable, Mapping
from functools import partial

import httpx
from aws_lambda_powertools.utilities.typing import LambdaContext

from aiki_push.adapters.transport.asgi_api import asgi_api
from aiki_push.adapters.transport.http_messages import HttpRequest, HttpResponse
from aiki_push.adapters.transport.lambda_api import lambda_api
from aiki_push.adapters.transport.wire import Wire
from tests.unit.adapters.transport.lambda_events import http_api_event

Door = Callable[[Wire, HttpRequest], HttpResponse]


def straight(wire: Wire, request: HttpRequest) -> HttpResponse:
    return wire.handle(request)


def through_lambda(wire: Wire, request: HttpRequest, *, stage: str = "$default", base64: bool = False) -> HttpResponse:
    body = b64encode(request.body).decode() if base64 else request.body.decode("utf-8", "surrogateescape")
    event = http_api_event(
        request.method,
        request.path if stage == "$default" else f"/{stage}{request.path}",
        stage,
        rawQueryString=request.query,
        headers={name.title(): value for name, value in request.headers.items()},
        body=body,
        isBase64Encoded=base64,
    )
    answer = lambda_api(wire)(event, LambdaContext())
    assert (answer["isBase64Encoded"], answer["cookies"]) == (False, [])
    return HttpResponse(answer["statusCode"], answer["headers"], answer["body"].encode())


def through_asgi(wire: Wire, request: HttpRequest) -> HttpResponse:
    async def main() -> httpx.Response:
        transport = httpx.ASGITransport(asgi_api(wire), raise_app_exceptions=False)
        url = f"http://127.0.0.1{request.path}" + (f"?{request.query}" if request.query else "")
        async with httpx.AsyncClient(transport=transport) as client:
            return await client.request(request.method, url, headers=request.headers, content=request.body)

    answer = asyncio.run(main())
    headers = {name: value for name, value in answer.headers.items() if name != "content-length"}
    return HttpResponse(answer.status_code, headers, answer.content)


DOORS: Mapping[str, Door] = {
    "wire": straight,
    "HTTP API": partial(through_lambda, base64=True),
    "HTTP API with a named stage": partial(through_lambda, stage="prod"),
    "ASGI": through_asgi,
}


class DoorTransport(httpx.AsyncBaseTransport):
    """Carries what an HttpApi sends to a door."""

    def __init__(self, door: Door, wire: Wire) -> None:
        self._door = door
        self._wire = wire

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        path, _, query = request.url.raw_path.decode("ascii").partition("?")
        headers = {name: value for name, value in request.headers.items() if name.startswith(("aiki-", "content-type"))}
        message = HttpRequest(request.method, path, query, headers, request.content)
        answer = await asyncio.to_thread(self._door, self._wire, message)
        return httpx.Response(answer.status, headers=dict(answer.headers), content=answer.body)
