"""Which endpoint a run is pushed to, and what happens where one is not there."""

import errno
import os
import socket
import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import pytest

from aiki_push.adapters.delivery.http_push import turn_of
from aiki_push.domain.endpoints import Endpoint
from aiki_push.domain.errors import StorageUnavailable
from aiki_push.ports.publisher import Declined, Deferred, Failed, Outcome, Published
from aiki_push.testing import FakeClock
from tests.integration.pushing import beginning_with, only, publisher, push_once
from tests.integration.raw_server import Behaviour, RawServer, answer, closes, is_silent, raw_server
from tests.unit.adapters.delivery.delivery_examples import endpoint_at, ready_run

REFUSED = f"cannot be connected to: [Errno {errno.ECONNREFUSED}] {os.strerror(errno.ECONNREFUSED)}"


def dead_url() -> str:
    """Of a port on loopback that nobody listens on: it was just given back."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return f"http://127.0.0.1:{listener.getsockname()[1]}/"


@contextmanager
def deaf_url() -> Iterator[str]:
    """Of a port whose queue is full, so that connecting to it never ends."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        waiting = [socket.socket() for _ in range(3)]
        for one in waiting:
            one.setblocking(False)
            one.connect_ex(listener.getsockname())
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}/"
        finally:
            for one in waiting:
                one.close()


def connections(*servers: RawServer) -> Sequence[int]:
    return [len(server.received) for server in servers]


def test_a_run_that_no_endpoint_is_registered_for_has_no_route() -> None:
    with raw_server(answer(200)) as server:
        others = (endpoint_at(server.url, "elsewhere", namespace="other"), endpoint_at(server.url, "large", pools=("large",)))

        with publisher(*others) as made:
            runs = [ready_run(), ready_run(pool="small"), ready_run(workflow="refund", namespace="other")]
            assert made.publish(runs) == [Declined(has_route=False)] * 3
            assert made.publish([]) == []
        assert server.received == []


def test_a_run_goes_to_an_endpoint_of_its_namespace_that_serves_its_version_and_pool() -> None:
    with raw_server(answer(200)) as plain, raw_server(answer(202)) as large, raw_server(answer(200)) as foreign:
        endpoints = (
            endpoint_at(foreign.url, namespace="other"),
            endpoint_at(plain.url, "plain"),
            endpoint_at(large.url, "large", pools=("large", "huge")),
        )
        with publisher(*endpoints) as made:
            assert made.publish([ready_run(pool="huge"), ready_run(), ready_run()]) == [Published()] * 3
        assert connections(plain, large, foreign) == [2, 1, 0]


def test_turns_go_round_from_where_they_begin() -> None:
    with raw_server(answer(404)) as a, raw_server(answer(404)) as b, raw_server(answer(404)) as c, raw_server(answer(200)) as d:
        endpoints = [endpoint_at(server.url, name) for name, server in {"a": a, "b": b, "c": c, "d": d}.items()]
        tried = []
        for first in (0, 2, 3, 5):
            before = connections(a, b, c, d)
            with publisher(*endpoints, turn=beginning_with(first)) as made:
                assert made.publish([ready_run()]) == [Published()]
            tried.append([now - then for now, then in zip(connections(a, b, c, d), before, strict=True)])
        assert tried == [[1, 1, 1, 1], [0, 0, 1, 1], [0, 0, 0, 1], [0, 1, 1, 1]]


def test_every_offer_of_a_run_begins_with_the_next_endpoint() -> None:
    first = turn_of(ready_run(offer=1))
    assert [turn_of(ready_run(offer=offer)) - first for offer in (1, 2, 3, 9)] == [0, 1, 2, 8]


def test_runs_and_their_revisions_begin_with_all_endpoints_alike() -> None:
    begun = Counter(turn_of(ready_run(revision)) % 3 for revision in range(300))
    assert set(begun) == {0, 1, 2}
    assert min(begun.values()) > 60


def test_an_endpoint_whose_process_is_dead_is_passed_over_at_once() -> None:
    with raw_server(answer(200)) as alive:
        assert push_once(endpoint_at(dead_url(), "dead"), endpoint_at(alive.url)) == Published()
        assert len(alive.received) == 1


def test_an_endpoint_that_cannot_be_connected_to_in_half_the_time_is_passed_over() -> None:
    with deaf_url() as url, raw_server(answer(200)) as alive:
        assert push_once(endpoint_at(url, "deaf"), endpoint_at(alive.url), push_timeout_ms=500) == Published()
        assert len(alive.received) == 1


def test_connecting_in_vain_is_a_failure_and_no_timeout() -> None:
    with deaf_url() as url:
        outcome = push_once(endpoint_at(url, "deaf"), push_timeout_ms=300)
    assert outcome == Failed("endpoint deaf cannot be connected to: timed out")


def test_an_endpoint_that_declines_is_passed_over() -> None:
    with raw_server(answer(404)) as old, raw_server(answer(200)) as new:
        assert push_once(endpoint_at(old.url, "old"), endpoint_at(new.url, "new")) == Published()
        assert connections(old, new) == [1, 1]


def test_a_run_is_declined_only_where_every_endpoint_declines_it() -> None:
    with raw_server(answer(404)) as one, raw_server(answer(404)) as other:
        declining = (endpoint_at(one.url, "one"), endpoint_at(other.url, "other"))
        dead, dead_too = endpoint_at(dead_url(), "dead"), endpoint_at(dead_url(), "dead-too")

        assert push_once(*declining) == Declined()
        assert push_once(dead, *declining) == Failed(f"endpoint dead {REFUSED}")
        assert push_once(*declining, dead) == Failed(f"endpoint dead {REFUSED}")
        assert push_once(dead, dead_too) == Failed(f"endpoint dead-too {REFUSED}")


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        (200, Published()),
        (500, Failed("endpoint first answered 500")),
        (400, Failed("endpoint first answered 400")),
        (302, Failed("endpoint first answered 302; redirects are not followed, register the address itself")),
    ],
)
def test_any_other_answer_ends_the_turn(status: int, expected: Outcome) -> None:
    with raw_server(answer(status)) as first, raw_server(answer(200)) as second:
        assert push_once(endpoint_at(first.url, "first"), endpoint_at(second.url, "second")) == expected
        assert connections(first, second) == [1, 0]


def test_a_busy_endpoint_and_a_broken_connection_end_the_turn_too() -> None:
    with raw_server(answer(429, "retry-after: 9"), closes()) as first, raw_server(answer(200)) as second:
        with publisher(endpoint_at(first.url, "first"), endpoint_at(second.url, "second")) as made:
            assert isinstance(only(made.publish([ready_run()])), Deferred)
            assert isinstance(only(made.publish([ready_run()])), Failed)
        assert connections(first, second) == [2, 0]


def test_an_endpoint_that_froze_is_not_passed_over_since_it_may_have_the_run() -> None:
    with raw_server(is_silent) as frozen, raw_server(answer(200)) as alive:
        endpoints = (endpoint_at(frozen.url, "frozen"), endpoint_at(alive.url, "alive"))
        assert push_once(*endpoints, push_timeout_ms=300) == Published()
        assert connections(frozen, alive) == [1, 0]


def test_the_runs_of_a_batch_are_pushed_at_the_same_time_and_reported_in_their_order() -> None:
    met = threading.Barrier(10)

    def behave(connection: socket.socket) -> bool:
        met.wait()  # passes only once all ten have been sent
        return answer(200)(connection)

    with raw_server(behave) as server, publisher(endpoint_at(server.url)) as made:
        runs = [ready_run(revision) if revision % 2 else ready_run(revision, pool="none") for revision in range(20)]
        outcomes = made.publish(runs)

    assert outcomes == [Declined(has_route=False), Published()] * 10


def test_a_push_that_finds_no_free_place_fails_and_is_not_sent_later() -> None:
    enough = threading.Event()

    def dribbles(connection: socket.socket) -> bool:
        connection.sendall(b"HTTP/1.1 200 OK\r\nx: ")
        while not enough.wait(0.02):
            connection.sendall(b"x")
        return False

    with raw_server(dribbles) as server:
        with publisher(endpoint_at(server.url), concurrency=1, push_timeout_ms=300) as made:
            try:
                outcomes = made.publish([ready_run(1), ready_run(2)])
            finally:
                enough.set()
        assert outcomes == [Published(), Failed("too many pushes are on their way; the next offer may find a free place")]
        assert len(server.received) == 1


def test_no_endpoint_is_tried_when_the_time_is_over() -> None:
    clock = FakeClock()

    def takes_all_the_time(status: int) -> Behaviour:
        def behave(connection: socket.socket) -> bool:
            clock.advance(20_000)
            return answer(status)(connection)

        return behave

    with raw_server(takes_all_the_time(404), takes_all_the_time(200)) as first, raw_server(answer(200)) as second:
        endpoints = (endpoint_at(first.url, "first"), endpoint_at(second.url, "second"))
        with publisher(*endpoints, clock=clock, concurrency=1, push_timeout_ms=20_000) as made:
            too_late = Failed("no endpoint could be connected to in 20000 ms")
            assert made.publish([ready_run(), ready_run()]) == [Declined(), too_late]
            assert made.publish([ready_run(), ready_run()]) == [Published(), too_late]
        assert connections(first, second) == [2, 0]


def test_an_endpoint_that_cannot_be_reached_is_reported_when_no_time_is_left_for_the_next() -> None:
    clock = FakeClock()

    def resolves_slowly(_: str) -> Sequence[str]:
        clock.advance(20_000)
        return ["10.0.0.1"]

    endpoints = (endpoint_at("https://one.example.com/", "one"), endpoint_at("https://other.example.com/", "other"))
    with publisher(
        *endpoints, clock=clock, resolve=resolves_slowly, allow_private_addresses=False, push_timeout_ms=20_000
    ) as made:
        refusal = "endpoint one has the address 10.0.0.1, which is not public; the server's settings do not allow that"
        assert made.publish([ready_run()]) == [Failed(refusal)]


def test_endpoints_that_cannot_be_listed_are_an_error_before_anything_is_sent() -> None:
    def unavailable(_: str) -> Sequence[Endpoint]:
        raise StorageUnavailable("the table is throttled")

    with publisher(listing=unavailable) as made, pytest.raises(StorageUnavailable):
        made.publish([ready_run()])
