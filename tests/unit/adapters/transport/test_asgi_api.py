import asyncio
import json
from collections.abc import Mapping, MutableMapping
from threading import Barrier, Event, Thread, current_thread
from typing import Any

import pytest
from starlette.applications import Starlette

from aiki_push.adapters.transport.asgi_api import asgi_api
from aiki_push.adapters.transport.wire import Wire
from aiki_push.ports.api.operation import Operation
from aiki_push.ports.api.runs import GetRun, StartRun
from aiki_push.testing.entropy import SequentialEntropy
from tests.unit.adapters.transport.sample_service import PATIENCE_S, SampleService
from tests.unit.adapters.transport.sample_values import RUN, RUN_ID

Message = MutableMapping[str, Any]


def app_over(service: SampleService, **options: int) -> Starlette:
    return asgi_api(Wire(service, namespace="blue", entropy=SequentialEntropy(), **options))


def scope_of(method: str, path: str, **more: object) -> Mapping[str, object]:
    base = {"type": "http", "method": method, "path": path, "raw_path": path.encode(), "query_string": b"", "headers": []}
    return {**base, **more}


def ask(app: Starlette, scope: Mapping[str, object], *parts: Message) -> tuple[list[Message], int]:
    """What the app sent, and how many of the request's parts it took."""
    sent: list[Message] = []
    left = list(parts)

    async def receive() -> Message:
        return left.pop(0)

    async def send(message: Message) -> None:
        sent.append(message)

    asyncio.run(app({**scope}, receive, send))
    return sent, len(parts) - len(left)


def part(body: bytes, more_body: bool = False) -> Message:
    return {"type": "http.request", "body": body, "more_body": more_body}


def test_a_body_is_put_together_from_its_parts() -> None:
    service = SampleService(RUN)
    sent, _ = ask(app_over(service), scope_of("POST", "/v1/runs"), part(b'{"workflow":"w",', True), part(b'"version":"1"}'))
    assert service.calls == [("blue", StartRun(workflow="w", version="1"))]
    assert [message.get("body") for message in sent] == [None, StartRun.answer.dump_json(RUN)]


def test_a_body_is_read_no_further_than_its_limit() -> None:
    service = SampleService(RUN)
    parts = [part(b"x" * 10, True)] * 5
    sent, taken = ask(app_over(service, max_body_bytes=25), scope_of("POST", "/v1/runs"), *parts)
    assert (sent[0]["status"], taken, service.calls) == (413, 3, [])


def test_a_client_that_leaves_while_it_sends_is_let_go() -> None:
    service = SampleService(RUN)
    sent, _ = ask(app_over(service), scope_of("POST", "/v1/runs"), part(b"{", True), {"type": "http.disconnect"})
    assert (sent, service.calls) == ([], [])


def test_a_path_that_only_came_decoded_is_as_good() -> None:
    service = SampleService(RUN)
    ask(app_over(service), scope_of("GET", f"/v1/runs/{RUN_ID}", raw_path=None), part(b""))
    assert service.calls == [("blue", GetRun(run_id=RUN_ID))]


@pytest.mark.parametrize(
    ("scope", "fault"),
    [
        ({"raw_path": b"/v1/runs/\xff"}, {"field": "path", "message": "is not percent-encoded UTF-8"}),
        ({"raw_path": b"/v1/runs/a/history", "query_string": b"cursor=\xff"}, {"field": "cursor", "message": "is not valid"}),
    ],
)
def test_bytes_that_are_not_utf_8_are_refused_where_they_stand(scope: dict[str, bytes], fault: dict[str, str]) -> None:
    service = SampleService(RUN)
    sent, _ = ask(app_over(service), scope_of("GET", "/", **scope), part(b""))
    assert fault in json.loads(sent[1]["body"])["errors"]
    assert (sent[0]["status"], service.calls) == (400, [])


def test_a_header_that_came_twice_is_not_one_of_the_two() -> None:
    headers = [(b"aiki-version", b"0.1"), (b"aiki-version", b"0.1")]
    sent, _ = ask(app_over(SampleService(RUN)), scope_of("GET", f"/v1/runs/{RUN_ID}", headers=headers), part(b""))
    assert sent[0]["status"] == 400


def test_requests_beyond_the_limit_are_refused_while_every_place_is_taken() -> None:
    entered, leave = Barrier(4, timeout=PATIENCE_S), Event()

    def answer(_operation: Operation[Any]) -> object:
        entered.wait()
        leave.wait(PATIENCE_S)
        return RUN

    async def main() -> list[int]:
        app = app_over(SampleService(answer), max_concurrent_requests=3)
        held = [asyncio.create_task(status_of(app)) for _ in range(3)]
        await asyncio.to_thread(entered.wait)
        refused = [await status_of(app) for _ in range(20)]
        leave.set()
        return refused + [await one for one in held]

    assert asyncio.run(main()) == [429] * 20 + [200] * 3


async def status_of(app: Starlette) -> int:
    statuses: list[int] = []

    async def receive() -> Message:
        return part(b"")

    async def send(message: Message) -> None:
        statuses.append(message.get("status", 0))

    await app({**scope_of("GET", f"/v1/runs/{RUN_ID}")}, receive, send)
    return statuses[0]


def test_the_threads_end_with_the_lifespan() -> None:
    threads: list[Thread] = []

    def answer(_operation: Operation[Any]) -> object:
        threads.append(current_thread())
        return RUN

    async def main() -> None:
        app = app_over(SampleService(answer))
        async with app.router.lifespan_context(app):
            await status_of(app)

    asyncio.run(main())
    [thread] = threads
    thread.join()
    assert thread is not current_thread()
