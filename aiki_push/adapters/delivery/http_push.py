"""Offering runs by signed HTTP requests to registered endpoints."""

import logging
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from typing import TypeAlias
from zlib import crc32

from aiki_push.adapters.delivery.private_addresses import Resolve, resolve_host
from aiki_push.adapters.delivery.signed_post import Progress, SignedPost, Unreachable
from aiki_push.domain.endpoints import Endpoint, serving
from aiki_push.ports.clock import Clock
from aiki_push.ports.publisher import Declined, Failed, Outcome, ReadyRun
from aiki_push.ports.signing import KeyRing

EndpointsOf: TypeAlias = Callable[[str], Sequence[Endpoint]]
"""The endpoints registered in a namespace."""

Turn: TypeAlias = Callable[[ReadyRun], int]
"""Which of the endpoints that serve a run an offer of it begins with: a number from 0, which goes round."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Push:
    """A run, and the endpoints to try in turn until `deadline_ms` (monotonic)."""

    run: ReadyRun
    endpoints: Sequence[Endpoint]
    deadline_ms: float
    progress: Progress


def turn_of(run: ReadyRun) -> int:
    """Spread evenly over runs and revisions, and the next one with every offer.

    So a run that nobody claimed, perhaps because the endpoint takes requests and has hung, goes to another the next time.
    """
    return crc32(f"{run.run_id} {run.revision}".encode()) + run.offer


class HttpPushPublisher:
    """A Publisher that sends each run to one of the endpoints that serve it; `turn` says with which it begins.

    An endpoint that declines the run, or cannot be connected to, is passed over for the next at once, so that a dead process
    delays nothing. Any other answer is the outcome. After the last endpoint the outcome is `Declined` where all of them
    declined, else the failure of the last one that could not be connected to.

    A run takes at most `push_timeout_ms`, over all its endpoints. A request that was sent and not answered by then counts as
    published: the endpoint may be executing the run, and the claim will tell. At most `concurrency` requests are on their
    way at a time; one whose answer dribbles in keeps its place until the answer is complete.

    `allow_private_addresses` is for local use: it allows hosts that are not on the public internet, and http to loopback
    addresses. `resolve` says which addresses a host has; without the permission it is asked at every push.
    """

    def __init__(
        self,
        endpoints: EndpointsOf,
        keys: KeyRing,
        clock: Clock,
        *,
        push_timeout_ms: int = 3_000,
        allow_private_addresses: bool = False,
        concurrency: int = 32,
        resolve: Resolve = resolve_host,
        turn: Turn = turn_of,
    ) -> None:
        self._endpoints = endpoints
        self._clock = clock
        self._turn = turn
        self._push_timeout_ms = push_timeout_ms
        self._threads = ThreadPoolExecutor(concurrency, thread_name_prefix="aiki-push")
        self._post = SignedPost(
            keys, clock, connections=concurrency, resolve=resolve, allow_private_addresses=allow_private_addresses
        )

    def publish(self, runs: Sequence[ReadyRun]) -> Sequence[Outcome]:
        """As `aiki_push.ports.publisher.Publisher`. Raises what listing the endpoints raises, and then nothing was sent."""
        listed = {namespace: self._endpoints(namespace) for namespace in {run.namespace for run in runs}}
        deadline_ms = self._clock.monotonic_ms() + self._push_timeout_ms
        no_answer = Failed(f"no endpoint could be connected to in {self._push_timeout_ms} ms")
        pushes = [_Push(run, self._in_turn(run, listed[run.namespace]), deadline_ms, Progress(no_answer)) for run in runs]
        offers = [self._threads.submit(self._offer, push) for push in pushes]
        wait(offers, timeout=self._push_timeout_ms / 1_000)
        return [self._outcome(push, offer) for push, offer in zip(pushes, offers, strict=True)]

    def close(self) -> None:
        """Wait for the requests on their way, and close all connections."""
        self._threads.shutdown(wait=True, cancel_futures=True)
        self._post.close()

    def _in_turn(self, run: ReadyRun, listed: Sequence[Endpoint]) -> Sequence[Endpoint]:
        endpoints = serving(listed, run.workflow, run.version, run.pool)
        first = self._turn(run) % max(1, len(endpoints))
        return endpoints[first:] + endpoints[:first]

    def _offer(self, push: _Push) -> Outcome:
        outcome: Outcome = Declined(has_route=bool(push.endpoints))
        for endpoint in push.endpoints:
            left_ms = push.deadline_ms - self._clock.monotonic_ms()
            if left_ms <= 0:
                return outcome if isinstance(outcome, Failed) else push.progress.so_far
            answer = self._post.send(push.run, endpoint, left_ms, push.progress)
            match answer:
                case Declined():
                    continue
                case Unreachable(error=error):
                    outcome = Failed(error)
                case _:
                    return answer
        return outcome

    def _outcome(self, push: _Push, offer: "Future[Outcome]") -> Outcome:
        """What the offer brought, or what is known of it when the time is over."""
        if offer.cancel():
            return Failed("too many pushes are on their way; the next offer may find a free place")
        if not offer.done():
            return push.progress.so_far
        error = offer.exception()
        if error is None:
            return offer.result()
        _log.error("pushing run %s failed unexpectedly", push.run.run_id, exc_info=error)
        return Failed(f"the push failed unexpectedly ({type(error).__name__}); the server's log says more")
