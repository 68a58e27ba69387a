import asyncio
import logging
from collections.abc import Sequence
from typing import Any

import httpx
import pytest

from aiki_push.adapters.transport.http_client import HttpApi
from aiki_push.adapters.transport.http_messages import HttpRequest, HttpResponse
from aiki_push.adapters.transport.problems import problem_response
from aiki_push.adapters.transport.wire import Wire
from aiki_push.domain.errors import (
    API_ERRORS,
    AikiError,
    ApiError,
    RateLimited,
    ServerUnreachable,
    SettingsError,
    StorageUnavailable,
)
from aiki_push.domain.values import DurationMs
from aiki_push.ports.api.operation import Operation
from aiki_push.ports.api.runs import GetRun, StartRun, WaitRun
from aiki_push.testing.clocks import FakeClock
from aiki_push.testing.entropy import SequentialEntropy
from tests.unit.adapters.transport.sample_service import Pauses, SampleService
from tests.unit.adapters.transport.sample_values import RUN, RUN_ID

Reply = httpx.Response | httpx.TransportError | HttpResponse

GET = GetRun(run_id=RUN_ID)
URL = "http://server.test/stage"
PLACE = f"GET /stage/v1/runs/{RUN_ID} at server.test"
GOOD = HttpResponse(200, {"content-type": "application/json"}, GetRun.answer.dump_json(RUN))
GARBAGE = httpx.Response(502, text="<html>secret")


class Script(httpx.AsyncBaseTransport):
    """Gives the replies in order, the last one for ever, and keeps the requests."""

    def __init__(self, *replies: Reply) -> None:
        self._replies = replies
        self.requests: list[httpx.Request] = []

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        self.requests.append(request)
        reply = self._replies[min(len(self.requests), len(self._replies)) - 1]
        if isinstance(reply, httpx.TransportError):
            raise reply
        if isinstance(reply, HttpResponse):
            return httpx.Response(reply.status, headers=dict(reply.headers), content=reply.body)
        return httpx.Response(reply.status_code, headers=reply.headers, content=reply.content)


def perform(transport: httpx.AsyncBaseTransport, operation: Operation[Any] = GET, **options: Any) -> tuple[Any, Sequence[float]]:
    """What came of `operation`, an answer or an error, and the seconds waited before each repetition."""
    clock = FakeClock()
    pauses = Pauses(clock)

    async def main() -> Any:
        api = HttpApi(URL, clock=clock, entropy=SequentialEntropy(), transport=transport, sleep=pauses, **options)
        try:
            return await api.call(operation)
        except AikiError as error:
            return error
        finally:
            await api.close()

    return asyncio.run(main()), pauses.seconds


def test_a_request_says_its_version_and_carries_the_headers_it_was_given() -> None:
    script = Script(GOOD)
    perform(script, StartRun(workflow="order", version="1"), headers={"Authorization": "Bearer key", "Aiki-Version": "9.9"})
    [request] = script.requests
    names = ("aiki-version", "authorization", "content-type")
    assert (request.method, request.url.path, request.content) == (
        "POST",
        "/stage/v1/runs",
        b'{"workflow":"order","version":"1"}',
    )
    assert [request.headers[name] for name in names] == ["0.1", "Bearer key", "application/json"]


RETRIED: list[Reply] = [
    httpx.ConnectError("refused"),
    httpx.ConnectTimeout("slow"),
    httpx.ReadError("reset"),
    httpx.ReadTimeout("slow"),
    httpx.WriteError("reset"),
    httpx.PoolTimeout("busy"),
    httpx.RemoteProtocolError("closed"),
    GARBAGE,
    httpx.Response(503),
    httpx.Response(504),
    httpx.Response(429),
    httpx.Response(503, headers={"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}),
]


@pytest.mark.parametrize("setback", RETRIED, ids=repr)
def test_a_passing_fault_is_retried_with_waits_drawn_from_a_doubling_range(setback: Reply) -> None:
    script = Script(*[setback] * 8, GOOD)
    result, pauses = perform(script, retry_budget_ms=60_000)
    fractions = SequentialEntropy()
    assert result == RUN
    assert pauses == [fractions.fraction() * longest / 1_000 for longest in (100, 200, 400, 800, 1_600, 3_200, 5_000, 5_000)]


@pytest.mark.parametrize(
    "setback", [problem_response(StorageUnavailable("throttled")), problem_response(RateLimited("slow down"))]
)
def test_a_wait_that_the_server_asks_for_comes_before_the_random_one(setback: HttpResponse) -> None:
    result, pauses = perform(Script(setback, GOOD))
    assert (result, pauses) == (RUN, [(1_000 + SequentialEntropy().fraction() * 100) / 1_000])


def test_a_server_cannot_ask_for_a_long_wait() -> None:
    result, pauses = perform(Script(httpx.Response(503, headers={"retry-after": "86400"}), GOOD))
    assert (result, [int(pause) for pause in pauses]) == (RUN, [10])


@pytest.mark.parametrize(
    ("setback", "error"),
    [
        (problem_response(StorageUnavailable("throttled", table="runs")), StorageUnavailable("throttled", table="runs")),
        (problem_response(RateLimited("slow down")), RateLimited("slow down")),
        (
            httpx.ConnectError("refused"),
            ServerUnreachable(f"{PLACE} gave no answer (ConnectError: refused): repeating the request is safe"),
        ),
        (
            httpx.ReadError("some bytes that came"),
            ServerUnreachable(f"{PLACE} gave no answer (ReadError): repeating the request is safe"),
        ),
        (GARBAGE, ServerUnreachable(f"{PLACE} answered 502 without an error that this client knows")),
    ],
)
def test_the_last_setback_is_raised_when_the_time_is_up(setback: Reply, error: AikiError) -> None:
    script = Script(setback)
    raised, pauses = perform(script, retry_budget_ms=5_000)
    assert (type(raised), str(raised), vars(raised)) == (type(error), str(error), vars(error))
    assert (len(script.requests), sum(pauses) <= 5) == (len(pauses) + 1, True)
    assert len(pauses) > 1


def test_the_last_setback_counts_whatever_came_before() -> None:
    raised, _ = perform(Script(httpx.ConnectError("refused"), problem_response(StorageUnavailable("throttled"))))
    assert type(raised) is StorageUnavailable


def test_the_time_that_attempts_take_counts() -> None:
    clock = FakeClock()

    class Slow(Script):
        async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
            clock.advance(9_000)
            return await super().handle_async_request(request)

    async def main() -> int:
        script = Slow(httpx.ReadTimeout("slow"))
        api = HttpApi(
            URL, clock=clock, entropy=SequentialEntropy(), transport=script, sleep=Pauses(clock), retry_budget_ms=20_000
        )
        with pytest.raises(ServerUnreachable):
            await api.call(GET)
        await api.close()
        return len(script.requests)

    assert asyncio.run(main()) == 3


@pytest.mark.parametrize("kind", [kind for kind in API_ERRORS.values() if kind.http_status not in (429, 503)])
def test_any_other_error_of_the_server_is_raised_at_once_as_it_was(kind: type[ApiError]) -> None:
    script = Script(problem_response(kind("as it is", revision=7, errors=[{"field": "a"}])))
    raised, pauses = perform(script)
    assert (type(raised), raised.detail, raised.fields) == (kind, "as it is", {"revision": 7, "errors": [{"field": "a"}]})
    assert (len(script.requests), pauses) == (1, [])


@pytest.mark.parametrize(
    ("reply", "says"),
    [
        (httpx.Response(500, json={"message": "secret"}), "answered 500 without an error that this client knows"),
        (httpx.Response(404, text="secret"), "answered 404 without an error that this client knows"),
        (httpx.Response(301, headers={"location": "/secret"}), "answered 301 without an error that this client knows"),
        (httpx.Response(204), "answered 204 without an error that this client knows"),
        (httpx.Response(200, json={"id": "secret"}), "answered 200 with something else than its answer"),
        (httpx.Response(200, text="secret"), "answered 200 with something else than its answer"),
        (httpx.Response(409, json={"code": "later", "detail": "secret"}), "answered 409 without an error that this client knows"),
        (httpx.LocalProtocolError("secret"), "could not be asked (LocalProtocolError)"),
    ],
)
def test_an_answer_of_something_else_is_named_by_status_and_path_and_never_shown(
    reply: Reply, says: str, caplog: pytest.LogCaptureFixture
) -> None:
    script = Script(reply)
    with caplog.at_level(logging.DEBUG):
        raised, pauses = perform(script)
    assert (type(raised), str(raised)) == (ServerUnreachable, f"{PLACE} {says}")
    assert (len(script.requests), pauses, "secret" in caplog.text) == (1, [], False)


def test_a_long_poll_may_take_longer_than_other_requests() -> None:
    script = Script(GOOD)
    perform(script, WaitRun(run_id=RUN_ID, timeout_ms=DurationMs(20_000)), timeout_ms=3_000)
    perform(script, GET, timeout_ms=3_000)
    assert [request.extensions["timeout"]["read"] for request in script.requests] == [23.0, 3.0]
    assert [request.extensions["timeout"]["connect"] for request in script.requests] == [3.0, 3.0]


class LosesAnswers(httpx.AsyncBaseTransport):
    """Asks the wire each time; the first `lost` answers never arrive."""

    def __init__(self, wire: Wire, lost: int) -> None:
        self._wire = wire
        self._lost = lost

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        message = HttpRequest(request.method, request.url.path.removeprefix("/stage"), body=request.content)
        answer = self._wire.handle(message)
        self._lost -= 1
        if self._lost >= 0:
            raise httpx.ReadError("the connection died")
        return httpx.Response(answer.status, headers=dict(answer.headers), content=answer.body)


def test_a_request_whose_answer_was_lost_is_sent_again_to_the_letter() -> None:
    service = SampleService(RUN)
    wire = Wire(service, namespace="blue", entropy=SequentialEntropy())
    start = StartRun(run_id=RUN_ID, workflow="order", version="1", input={"n": 1.0})
    result, _ = perform(LosesAnswers(wire, lost=2), start)
    assert (result, service.calls) == (RUN, [("blue", start)] * 3)


@pytest.mark.parametrize(
    "base_url",
    [
        "",
        "server",
        "server:80",
        "ftp://server",
        "http://",
        "http://a/?q=secret",
        "http://a:b",
        "http://user:password@server",
        "//a",
    ],
)
def test_a_wrong_url_is_refused_when_the_client_is_made(base_url: str) -> None:
    with pytest.raises(SettingsError, match=r"^the server's URL should be like https://api\.example\.com"):
        HttpApi(base_url, clock=FakeClock(), entropy=SequentialEntropy())


def test_a_slash_at_the_end_of_the_url_makes_no_difference() -> None:
    async def asked(base_url: str) -> str:
        script = Script(GOOD)
        api = HttpApi(base_url, clock=FakeClock(), entropy=SequentialEntropy(), transport=script)
        await api.call(GET)
        await api.close()
        return str(script.requests[0].url)

    assert [asyncio.run(asked(url)) for url in ("http://a:1", "http://a:1/")] == [f"http://a:1/v1/runs/{RUN_ID}"] * 2


def test_a_closed_client_refuses_calls() -> None:
    script = Script(GOOD)

    async def main() -> None:
        api = HttpApi(URL, clock=FakeClock(), entropy=SequentialEntropy(), transport=script)
        await api.close()
        await api.call(GET)

    with pytest.raises(RuntimeError, match="closed"):
        asyncio.run(main())
    assert script.requests == []


def test_cancelling_a_call_ends_its_repetitions() -> None:
    script = Script(httpx.ConnectError("refused"))

    async def never(_seconds: float) -> None:
        await asyncio.Event().wait()

    async def main() -> None:
        api = HttpApi(URL, clock=FakeClock(), entropy=SequentialEntropy(), transport=script, sleep=never)
        call = asyncio.create_task(api.call(GET))
        while not script.requests:
            await asyncio.sleep(0)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        await api.close()

    asyncio.run(main())
    assert len(script.requests) == 1
