import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest

from aiki_push.apps.endpoint.asgi import AsgiDoor, Message, Scope
from aiki_push.apps.endpoint.messages import PushAnswer, PushRequest
from aiki_push.domain.errors import SettingsError
from tests.unit.apps.endpoint.push_examples import BODY, RUN_ID, Executions, handler, signed

MAX_BODY = 64 * 1024
HUNG_UP: Message = {"type": "http.disconnect"}

START: Message = {
    "type": "http.response.start",
    "status": 200,
    "headers": [(b"content-type", b"application/json"), (b"cache-control", b"no-store")],
}


@dataclass
class Connection:
    """The server's side of one ASGI connection: gives `messages` in order, then waits for ever; keeps what is sent."""

    messages: Sequence[Message]
    sent: list[Message] = field(default_factory=list)
    given: int = 0
    send_error: OSError | None = None

    async def receive(self) -> Message:
        if self.given == len(self.messages):
            await asyncio.Event().wait()
        self.given += 1
        return self.messages[self.given - 1]

    async def send(self, message: Message) -> None:
        if self.send_error:
            raise self.send_error
        self.sent.append(message)


@dataclass
class Controlled:
    """A handler that says when it has begun, and ends when it is let."""

    begun: asyncio.Event = field(default_factory=asyncio.Event)
    may_end: asyncio.Event = field(default_factory=asyncio.Event)
    ended: asyncio.Event = field(default_factory=asyncio.Event)

    async def handle(self, _: PushRequest) -> PushAnswer:
        self.begun.set()
        await self.may_end.wait()
        self.ended.set()
        return PushAnswer(200, {"outcome": "completed"})


def http(headers: Sequence[tuple[bytes, bytes]] = (), method: str = "POST") -> Scope:
    return {"type": "http", "asgi": {"version": "3.0"}, "method": method, "path": "/prod/push", "headers": list(headers)}


def parts(*bodies: bytes) -> list[Message]:
    """The messages of a request with this body; all but the last announce more."""
    last = len(bodies) - 1
    return [{"type": "http.request", "body": body, "more_body": number < last} for number, body in enumerate(bodies)]


async def call(door: AsgiDoor, connection: Connection, scope: Scope | None = None) -> None:
    await door(http() if scope is None else scope, connection.receive, connection.send)


async def heard_by_handler(scope: Scope, messages: Sequence[Message]) -> PushRequest:
    """What the handler is given."""
    heard: list[PushRequest] = []

    async def handle(request: PushRequest) -> PushAnswer:
        heard.append(request)
        return PushAnswer(204, {})

    await call(AsgiDoor(handle), Connection(messages), scope)
    [request] = heard
    return request


async def test_a_signed_push_is_executed_and_answered() -> None:
    executions = Executions()
    connection = Connection(parts(BODY[:50], BODY[50:], b""))
    headers = [(name.encode(), value.encode()) for name, value in signed().items()]

    await call(AsgiDoor(handler(executions).handle), connection, http(headers))

    assert executions.asked == [(RUN_ID, 7)]
    assert connection.sent == [START, {"type": "http.response.body", "body": b'{"outcome":"completed"}'}]


async def test_a_refusal_is_answered_with_its_headers() -> None:
    connection = Connection(parts(b""))

    await call(AsgiDoor(handler(Executions()).handle), connection, http(method="GET"))

    headers = [(b"content-type", b"application/json"), (b"cache-control", b"no-store"), (b"allow", b"POST")]
    assert connection.sent == [
        {"type": "http.response.start", "status": 405, "headers": headers},
        {"type": "http.response.body", "body": b'{"code":"method_not_allowed"}'},
    ]


async def test_the_handler_is_given_the_request_to_the_byte() -> None:
    headers = [(b"Webhook-Id", b"msg_1"), (b"x-one", b"a"), (b"X-Latin", b"\xe9"), (b"x-ONE", b"b")]

    request = await heard_by_handler(http(headers, "PUT"), parts(b"\xff", b"", b"\x00\r\n "))

    assert request == PushRequest("PUT", {"webhook-id": "msg_1", "x-one": "a,b", "x-latin": "\u00e9"}, b"\xff\x00\r\n ")


async def test_a_server_may_leave_out_what_it_has_nothing_to_say_about() -> None:
    assert await heard_by_handler(http(), [{"type": "http.request"}]) == PushRequest("POST")


async def test_a_body_is_not_read_further_than_it_takes_to_see_that_it_is_too_large() -> None:
    connection = Connection(parts(*[b"x" * 1_024] * 1_000))

    await call(AsgiDoor(handler(Executions()).handle), connection, http())

    assert [message.get("status") for message in connection.sent] == [413, None]
    assert connection.given == 65


async def test_a_body_of_64_kb_is_read_whole() -> None:
    request = await heard_by_handler(http(), parts(b"x" * MAX_BODY, b""))
    assert request.body == b"x" * MAX_BODY


async def test_a_caller_who_hangs_up_within_the_body_is_not_handled() -> None:
    connection = Connection([*parts(BODY, b"")[:1], HUNG_UP])
    executions = Executions()

    await call(AsgiDoor(handler(executions).handle), connection, http())

    assert (executions.asked, connection.sent) == ([], [])


async def test_a_caller_who_hangs_up_does_not_end_the_segment() -> None:
    controlled = Controlled()
    connection = Connection([*parts(BODY), HUNG_UP])
    request = asyncio.create_task(call(AsgiDoor(controlled.handle), connection))
    await controlled.begun.wait()

    # This is how servers tell an app that its caller is gone and nobody waits for it.
    request.cancel()
    await asyncio.wait([request])
    assert request.cancelled()
    assert not controlled.ended.is_set()

    controlled.may_end.set()
    await controlled.ended.wait()
    assert connection.sent == []


async def test_an_answer_that_nobody_waits_for_is_dropped_in_silence(caplog: pytest.LogCaptureFixture) -> None:
    executions = Executions()
    headers = [(name.encode(), value.encode()) for name, value in signed().items()]
    connection = Connection(parts(BODY), send_error=BrokenPipeError("hung up"))

    await call(AsgiDoor(handler(executions).handle), connection, http(headers))

    assert executions.asked == [(RUN_ID, 7)]
    assert caplog.records == []


async def test_pushes_are_handled_side_by_side() -> None:
    both = asyncio.Barrier(2)

    async def handle(_: PushRequest) -> PushAnswer:
        await both.wait()  # passes only once both are being handled
        return PushAnswer(200, {})

    door = AsgiDoor(handle)
    await asyncio.gather(call(door, Connection(parts(b""))), call(door, Connection(parts(b""))))


LIFESPAN: Scope = {"type": "lifespan", "asgi": {"version": "3.0"}}
STARTUP: Message = {"type": "lifespan.startup"}
SHUTDOWN: Message = {"type": "lifespan.shutdown"}
COMPLETE: list[Message] = [{"type": "lifespan.startup.complete"}, {"type": "lifespan.shutdown.complete"}]


async def test_the_lifespan_is_answered_and_ends() -> None:
    connection = Connection([STARTUP, SHUTDOWN])
    await call(AsgiDoor(handler(Executions()).handle), connection, LIFESPAN)
    assert connection.sent == COMPLETE


async def test_a_shutdown_waits_for_the_segments_whose_callers_have_hung_up() -> None:
    controlled = Controlled()
    door = AsgiDoor(controlled.handle)
    request = asyncio.create_task(call(door, Connection(parts(BODY))))
    await controlled.begun.wait()
    request.cancel()
    await asyncio.wait([request])

    connection = Connection([STARTUP, SHUTDOWN])
    lifespan = asyncio.create_task(door(LIFESPAN, connection.receive, connection.send))
    while connection.given < 2:
        await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert connection.sent == COMPLETE[:1]

    controlled.may_end.set()
    await lifespan
    assert controlled.ended.is_set()
    assert connection.sent == COMPLETE


async def test_a_shutdown_does_not_wait_for_ever() -> None:
    controlled = Controlled()
    door = AsgiDoor(controlled.handle, shutdown_ms=10)
    request = asyncio.create_task(call(door, Connection(parts(BODY))))
    await controlled.begun.wait()

    connection = Connection([STARTUP, SHUTDOWN])
    await call(door, connection, LIFESPAN)

    assert connection.sent == COMPLETE
    assert not request.done()
    controlled.may_end.set()
    await request


@pytest.mark.parametrize("kind", ["websocket", "http3"])
async def test_a_connection_of_another_kind_is_refused(kind: str) -> None:
    connection = Connection([])
    with pytest.raises(SettingsError, match=f"^an endpoint answers HTTP requests, and this is {kind}$"):
        await AsgiDoor(handler(Executions()).handle)({"type": kind}, connection.receive, connection.send)
