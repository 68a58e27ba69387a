"""Offering runs by signed HTTP requests to registered endpoints."""

import logging
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import TypeAlias
from urllib.parse import urlsplit

import httpx

from aiki_push.adapters.delivery.private_addresses import Resolve, private_address, resolve_host
from aiki_push.adapters.delivery.push_answers import GATEWAY_TIMEOUT_MS, read_answer
from aiki_push.domain.endpoints import Endpoint, check_url, serving
from aiki_push.domain.errors import AikiError, InvalidRequest, SettingsError
from aiki_push.domain.push_message import PushData, encode_push, webhook_id
from aiki_push.ports.clock import Clock
from aiki_push.ports.entropy import Entropy
from aiki_push.ports.publisher import Declined, Failed, Outcome, Published, ReadyRun
from aiki_push.ports.signing import KeyRing, signed_headers

MAX_ANSWER_BYTES = 4_096
"""How much of an answer's body is read, and thrown away, so that the connection can be used again. More ends the connection."""

IDLE_S = 4
"""Idle connections are dropped before servers drop them (uvicorn and Node after 5 s), so that a push rarely meets a closed one."""

EndpointsOf: TypeAlias = Callable[[str], Sequence[Endpoint]]
"""The endpoints registered in a namespace."""

_log = logging.getLogger(__name__)


@dataclass(slots=True)
class _Push:
    """One run on its way. `is_sent` is True once an endpoint has been sent the whole request and has not declined."""

    run: ReadyRun
    endpoints: Sequence[Endpoint]
    deadline_ms: float
    is_sent: bool = False

    def sending(self, body: bytes) -> Iterator[bytes]:
        yield body
        self.is_sent = True


@dataclass(frozen=True, slots=True)
class _Unreachable:
    """Nothing was sent, so another endpoint may be tried at once."""

    reason: str


class HttpPushPublisher:
    """A Publisher that sends each run to one of the endpoints that serve it, beginning with a random one.

    An endpoint that declines the run or cannot be connected to is passed over for the next, so that a dead process delays
    nothing. The first other answer is the outcome. After the last endpoint the outcome is `Declined` where all of them
    declined, else the failure to connect to the last one that could not be reached.

    A push takes at most `push_timeout_ms`, over all its endpoints. A request that was sent and not answered by then counts as
    published: the endpoint may be executing the run, and the claim will tell. At most `concurrency` pushes are on their way
    at a time. Each request carries a signature and nothing else that an endpoint could use against the server: no
    credentials, no cookies. Proxies of the environment are not used.

    `allow_private_addresses` is for local use: it allows http to loopback addresses, and hosts that are not on the public
    internet. `resolve` says which addresses a host has; it is asked at every push.
    """

    def __init__(
        self,
        endpoints: EndpointsOf,
        keys: KeyRing,
        clock: Clock,
        entropy: Entropy,
        *,
        push_timeout_ms: int = 3_000,
        allow_private_addresses: bool = False,
        concurrency: int = 32,
        resolve: Resolve = resolve_host,
    ) -> None:
        self._endpoints = endpoints
        self._keys = keys
        self._clock = clock
        self._entropy = entropy
        self._push_timeout_ms = push_timeout_ms
        self._allow_private_addresses = allow_private_addresses
        self._resolve = resolve
        self._threads = ThreadPoolExecutor(concurrency, thread_name_prefix="aiki-push")
        self._http = httpx.Client(
            headers={"content-type": "application/json", "accept": "application/json", "user-agent": "aiki-push"},
            cookies=CookieJar(DefaultCookiePolicy(allowed_domains=())),
            limits=httpx.Limits(max_connections=concurrency, max_keepalive_connections=concurrency, keepalive_expiry=IDLE_S),
            trust_env=False,
        )

    def publish(self, runs: Sequence[ReadyRun]) -> Sequence[Outcome]:
        """As `aiki_push.ports.publisher.Publisher`; takes at most `push_timeout_ms` beside listing the endpoints."""
        listed = {namespace: self._list(namespace) for namespace in {run.namespace for run in runs}}
        deadline_ms = self._clock.monotonic_ms() + self._push_timeout_ms
        pushes = [self._push(run, listed[run.namespace], deadline_ms) for run in runs]
        started = [push if isinstance(push, Declined | Failed) else (push, self._threads.submit(self._offer, push)) for push in pushes]
        wait([one[1] for one in started if isinstance(one, tuple)], timeout=self._push_timeout_ms / 1_000)
        return [self._outcome(*one) if isinstance(one, tuple) else one for one in started]

    def close(self) -> None:
        """Wait for the pushes on their way, which takes at most about `push_timeout_ms`, and close all connections."""
        self._threads.shutdown(wait=True, cancel_futures=True)
        self._http.close()

    def _list(self, namespace: str) -> Sequence[Endpoint] | Failed:
        try:
            return self._endpoints(namespace)
        except AikiError as error:
            return Failed(f"the endpoints could not be listed: {error}")

    def _push(self, run: ReadyRun, listed: Sequence[Endpoint] | Failed, deadline_ms: float) -> _Push | Declined | Failed:
        if isinstance(listed, Failed):
            return listed
        endpoints = serving(listed, run.workflow, run.version, run.pool)
        if not endpoints:
            return Declined(has_route=False)
        first = int(self._entropy.fraction() * len(endpoints))
        return _Push(run, endpoints[first:] + endpoints[:first], deadline_ms)

    def _outcome(self, push: _Push, offered: "Future[Outcome]") -> Outcome:
        if offered.done():
            error = offered.exception()
            if error is None:
                return offered.result()
            _log.error("pushing run %s failed unexpectedly", push.run.run_id, exc_info=error)
            return Failed(f"the push failed unexpectedly ({type(error).__name__}); the server's log has more")
        if offered.cancel():
            return Failed("too many pushes are on their way; none was free in time")
        return Published() if push.is_sent else Failed(f"no endpoint could be connected to within {self._push_timeout_ms} ms")

    def _offer(self, push: _Push) -> Outcome:
        outcome: Outcome = Declined()
        for endpoint in push.endpoints:
            left_ms = push.deadline_ms - self._clock.monotonic_ms()
            if left_ms <= 0:
                break
            answer = self._send(push, endpoint, left_ms)
            if isinstance(answer, _Unreachable):
                outcome = Failed(f"endpoint {endpoint.id} {answer.reason}")
            elif not isinstance(answer, Declined):
                return Failed(f"endpoint {endpoint.id} {answer.error}") if isinstance(answer, Failed) else answer
        return outcome
