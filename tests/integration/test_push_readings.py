"""What each way of answering, or not answering, a push means for the offer, over real connections."""

import logging
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from aiki_push.ports.publisher import Declined, Failed, Published
from aiki_push.testing import FakeClock
from tests.integration.pushing import SECRET, SHARED, only, publisher, push_once
from tests.integration.raw_server import (
    Behaviour,
    answer,
    closes,
    half_closes,
    head,
    is_silent,
    raw_server,
    resets,
    sends,
)
from tests.unit.adapters.delivery.delivery_examples import endpoint_at, ready_run

BRIEFLY_MS = 300
"""Long enough for loopback; only tests in which time must run out wait for it."""


@contextmanager
def set_at_last(event: threading.Event) -> Iterator[None]:
    try:
        yield
    finally:
        event.set()


@pytest.mark.parametrize("status", [200, 202, 204])
def test_an_answer_of_success_is_published(status: int) -> None:
    with raw_server(answer(status)) as server:
        assert push_once(endpoint_at(server.url)) == Published()
        assert len(server.received) == 1


@pytest.mark.parametrize(
    ("behaviour", "error"),
    [
        pytest.param(resets(), "ReadError", id="reset before the answer"),
        pytest.param(resets(b"HTTP/1.1 200 O"), "ReadError", id="reset within the head"),
        pytest.param(resets(head(200, length=100) + b"{}"), "ReadError", id="reset within the body"),
        pytest.param(closes(), "RemoteProtocolError", id="empty answer"),
        pytest.param(closes(b"HTTP/1.1 200 OK\r\ncontent-"), "RemoteProtocolError", id="closed within the head"),
        pytest.param(closes(head(200, length=100) + b"{}"), "RemoteProtocolError", id="closed within the body"),
        pytest.param(half_closes(), "RemoteProtocolError", id="half-closed"),
        pytest.param(half_closes(head(200, length=100) + b"{}"), "RemoteProtocolError", id="half-closed within the body"),
        pytest.param(sends(b"SSH-2.0-OpenSSH_9.6\r\n\r\n"), "RemoteProtocolError", id="another protocol"),
        pytest.param(sends(head(200, "transfer-encoding: chunked", length=0) + b"zz\r\n"), "RemoteProtocolError", id="bad chunk"),
    ],
)
def test_a_connection_that_ends_before_the_whole_answer_is_a_failure_whatever_the_status(
    behaviour: Behaviour, error: str
) -> None:
    with raw_server(behaviour) as server:
        outcome = push_once(endpoint_at(server.url))

        assert outcome == Failed(f"endpoint orders ended the connection without a whole answer ({error})")
        assert len(server.received) == 1


@pytest.mark.parametrize(
    "behaviour",
    [
        pytest.param(is_silent, id="nothing"),
        pytest.param(sends(b"HTTP/1.1 20"), id="a part of the head"),
        pytest.param(sends(b"HTTP/1.1 100 Continue\r\n\r\n"), id="only an interim answer"),
        pytest.param(sends(head(200, length=100) + b"{}"), id="a success and a part of the body"),
    ],
)
def test_an_answer_that_does_not_come_in_time_is_published(behaviour: Behaviour) -> None:
    with raw_server(behaviour) as server:
        assert push_once(endpoint_at(server.url), push_timeout_ms=BRIEFLY_MS) == Published()
        assert len(server.received) == 1


def test_a_refusal_stands_though_its_body_does_not_come_in_time() -> None:
    with raw_server(sends(head(500, length=100) + b"{}")) as server:
        assert push_once(endpoint_at(server.url), push_timeout_ms=BRIEFLY_MS) == Failed("endpoint orders answered 500")


def test_an_answer_that_dribbles_in_for_ever_keeps_nobody_waiting() -> None:
    enough = threading.Event()

    def dribbles(connection: socket.socket) -> bool:
        connection.sendall(b"HTTP/1.1 200 OK\r\nx: ")
        while not enough.wait(0.02):
            connection.sendall(b"x")
        return False

    with (
        raw_server(dribbles) as server,
        publisher(endpoint_at(server.url), push_timeout_ms=BRIEFLY_MS) as made,
        set_at_last(enough),
    ):
        # No single wait takes long: bytes come in time, and their end never comes.
        assert made.publish([ready_run()]) == [Published()]


def test_a_redirect_is_not_followed() -> None:
    with raw_server(answer(200)) as elsewhere, raw_server(answer(307, f"location: {elsewhere.url}")) as server:
        outcome = push_once(endpoint_at(server.url))

        assert outcome == Failed("endpoint orders answered 307; redirects are not followed, register the address itself")
        assert len(server.received) == 1
        assert elsewhere.received == []


def test_a_long_answer_is_cut_off_instead_of_being_read_to_its_end() -> None:
    enough, was_cut_off = threading.Event(), threading.Event()

    def never_ends(connection: socket.socket) -> bool:
        connection.sendall(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n")
        try:
            while not enough.is_set():
                connection.sendall(b"400\r\n" + b"x" * 1_024 + b"\r\n")
        except OSError:
            was_cut_off.set()
        return False

    with raw_server(never_ends) as server, publisher(endpoint_at(server.url)) as made, set_at_last(enough):
        assert made.publish([ready_run()]) == [Published()]
        assert was_cut_off.wait(10)


@pytest.mark.parametrize(
    ("behaviour", "elapsed_ms", "expected"),
    [
        (answer(504), 28_000, Published()),
        (answer(504), 27_999, Failed("endpoint orders answered 504")),
        (answer(503), 28_000, Published()),
        (closes(), 28_000, Published()),
        (resets(), 28_000, Published()),
        (resets(), 27_999, Failed("endpoint orders ended the connection without a whole answer (ReadError)")),
        (answer(404), 28_000, Declined()),
        (answer(400), 28_000, Failed("endpoint orders answered 400")),
    ],
)
def test_a_gateway_that_gives_up_after_28_seconds_is_a_timeout(
    behaviour: Behaviour, elapsed_ms: int, expected: Published | Failed | Declined
) -> None:
    clock = FakeClock()

    def behaves_late(connection: socket.socket) -> bool:
        clock.advance(elapsed_ms)
        return behaviour(connection)

    with raw_server(behaves_late) as server, publisher(endpoint_at(server.url), clock=clock, push_timeout_ms=60_000) as made:
        assert made.publish([ready_run()]) == [expected]


@pytest.mark.parametrize("status", [401, 403])
def test_a_refused_signature_is_said_aloud_with_the_endpoint_and_without_a_secret(
    status: int, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    body = b'{"hint": "told by the endpoint"}'
    with raw_server(answer(status, body=body)) as server:
        outcome = push_once(endpoint_at(server.url, "orders-eu", secret=SHARED))

    refusal = f"refused the signature ({status}): compare the keys it trusts, its audience and its clock with the server's"
    assert outcome == Failed(f"endpoint orders-eu {refusal}")
    loud = [(record.levelname, record.getMessage()) for record in caplog.records if record.levelno >= logging.WARNING]
    assert loud == [("ERROR", f"endpoint orders-eu refused the signature ({status}): this is a problem of keys")]
    assert SHARED.removeprefix("whsec_") not in caplog.text
    assert SECRET.removeprefix("whsk_") not in caplog.text


def test_no_other_answer_is_an_error_of_the_log(caplog: pytest.LogCaptureFixture) -> None:
    with raw_server(answer(500), answer(404), answer(429), resets()) as server, publisher(endpoint_at(server.url)) as made:
        outcomes = [only(made.publish([ready_run()])) for _ in range(4)]

    assert [type(outcome).__name__ for outcome in outcomes] == ["Failed", "Declined", "Deferred", "Failed"]
    assert [record for record in caplog.records if record.levelno >= logging.WARNING] == []
