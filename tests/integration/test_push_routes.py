"""Which endpoint a run is pushed to, and what happens where one is not there."""

import errno
import os
import socket
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import pytest

from aiki_push.domain.endpoints import Endpoint
from aiki_push.domain.errors import StorageUnavailable
from aiki_push.ports.publisher import Declined, Deferred, Failed, Outcome, Published
from aiki_push.testing import SequentialEntropy
from tests.integration.pushing import only, publisher, push_once
from tests.integration.raw_server import RawServer, answer, closes, is_silent, raw_server
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


def test_turns_begin_at_random_and_then_go_round() -> None:
    with raw_server(answer(404)) as a, raw_server(answer(404)) as b, raw_server(answer(200)) as c:
        first_server: list[str] = []
        names = {a.url: "a", b.url: "b", c.url: "c"}
        with publisher(*(endpoint_at(url, name) for url, name in names.items()), entropy=SequentialEntropy()) as made:
            for _ in range(4):
                before = connections(a, b, c)
                assert made.publish([ready_run()]) == [Published()]
                tried = [now - then for now, then in zip(connections(a, b, c), before, strict=True)]
                first_server.append({(1, 1, 1): "a", (0, 1, 1): "b", (0, 0, 1): "c"}[tried[0], tried[1], tried[2]])
        # The fractions are 0.62, 0.24, 0.85, 0.47.
        assert first_server == ["b", "a", "c", "b"]


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
    with raw_server(is_silent) as server:
        with publisher(endpoint_at(server.url), concurrency=1, push_timeout_ms=300) as made:
            outcomes = made.publish([ready_run(1), ready_run(2)])
        assert outcomes == [Published(), Failed("too many pushes are on their way; the next offer may find a free place")]
        assert len(server.received) == 1


def test_endpoints_that_cannot_be_listed_are_an_error_before_anything_is_sent() -> None:
    def unavailable(_: str) -> Sequence[Endpoint]:
        raise StorageUnavailable("the table is throttled")

    with publisher(listing=unavailable) as made, pytest.raises(StorageUnavailable):
        made.publish([ready_run()])
