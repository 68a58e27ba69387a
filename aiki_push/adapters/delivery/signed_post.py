"""One signed request to one endpoint, and what came of it."""

import logging
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from http.cookiejar import CookieJar, DefaultCookiePolicy

import httpx

from aiki_push.adapters.delivery.private_addresses import Resolve, private_address
from aiki_push.adapters.delivery.push_answers import GATEWAY_TIMEOUT_MS, KEY_PROBLEMS, read_answer
from aiki_push.domain.endpoints import Endpoint, check_url
from aiki_push.domain.errors import InvalidRequest, SettingsError
from aiki_push.domain.push_message import PushData, encode_push, webhook_id
from aiki_push.ports.clock import Clock
from aiki_push.ports.publisher import Failed, Outcome, Published, ReadyRun
from aiki_push.ports.signing import KeyRing, signed_headers

MAX_ANSWER_BYTES = 4_096
"""How much of an answer's body is read, and thrown away, so that the connection can be used again. More ends the connection."""

IDLE_S = 4
"""Idle connections are dropped before servers drop them (uvicorn and Node after 5 s): a push rarely meets a closed one."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Unreachable:
    """Nothing was sent; `error` is one readable line that says why."""

    error: str


@dataclass(slots=True)
class Progress:
    """`so_far` is what an offer comes to for whoever does not wait any longer."""

    so_far: Outcome

    def sending(self, body: bytes) -> Iterator[bytes]:
        """`body` in one piece; once that has been sent, the offer counts as published."""
        yield body
        self.so_far = Published()


class SignedPost:
    """Sends pushes, with nothing in them that an endpoint could use against the server: no credentials and no cookies.

    Redirects are not followed, and proxies of the environment not used. Safe to call from `connections` threads at a time.
    """

    def __init__(self, keys: KeyRing, clock: Clock, *, connections: int, resolve: Resolve, allow_private_addresses: bool) -> None:
        self._keys = keys
        self._clock = clock
        self._resolve = resolve
        self._allow_private_addresses = allow_private_addresses
        self._http = httpx.Client(
            headers={"content-type": "application/json", "accept": "application/json", "user-agent": "aiki-push"},
            cookies=CookieJar(DefaultCookiePolicy(allowed_domains=())),
            limits=httpx.Limits(max_connections=connections, max_keepalive_connections=connections, keepalive_expiry=IDLE_S),
            trust_env=False,
        )

    def send(self, run: ReadyRun, endpoint: Endpoint, timeout_ms: float, progress: Progress) -> Outcome | Unreachable:
        """What came of offering `run` to `endpoint`.

        Connecting may take half of `timeout_ms`, each later wait all of it.
        """
        refusal = self._refusal(endpoint)
        if refusal is not None:
            return Unreachable(f"endpoint {endpoint.id} {refusal}")
        now = self._clock.now()
        body = encode_push(_data(run, endpoint), now)
        try:
            signer = self._keys.signer(endpoint.secret)
            headers = signed_headers(signer, webhook_id(run.run_id, run.revision, run.offer), now // 1_000, body)
        except SettingsError as error:
            _log.error("the push to endpoint %s could not be signed: %s", endpoint.id, error)
            return Failed(
                f"the push to endpoint {endpoint.id} could not be signed; the server's log says what is wrong with the keys"
            )
        headers["content-length"] = str(len(body))
        timeout = httpx.Timeout(timeout_ms / 1_000, connect=timeout_ms / 2_000)
        request = self._http.build_request("POST", endpoint.url, content=progress.sending(body), headers=headers, timeout=timeout)
        return self._exchange(run, endpoint, request, progress)

    def close(self) -> None:
        """Close all connections."""
        self._http.close()

    def _refusal(self, endpoint: Endpoint) -> str | None:
        try:
            check_url(endpoint.url, allow_loopback_http=self._allow_private_addresses)
            # As the connection reads the address: a second parser might see another host in it.
            host = httpx.URL(endpoint.url).raw_host.decode("ascii")
            found = None if self._allow_private_addresses else private_address(host, self._resolve)
        except (InvalidRequest, httpx.InvalidURL) as error:
            return f"cannot be pushed to: {error}"
        except (OSError, UnicodeError) as error:
            return f"has a host that cannot be resolved: {error}"
        return f"has the address {found}, which is not public; the server's settings do not allow that" if found else None

    def _exchange(self, run: ReadyRun, endpoint: Endpoint, request: httpx.Request, progress: Progress) -> Outcome | Unreachable:
        started_ms = self._clock.monotonic_ms()
        try:
            answer = self._http.send(request, stream=True)
            with closing(answer):
                outcome = self._read(run, endpoint, answer, self._clock.monotonic_ms() - started_ms)
                progress.so_far = outcome
                _drain(answer)
        except (httpx.ConnectError, httpx.ConnectTimeout, UnicodeError) as error:
            return Unreachable(f"endpoint {endpoint.id} cannot be connected to: {error or type(error).__name__}")
        except httpx.TransportError as error:
            is_late = self._clock.monotonic_ms() - started_ms >= GATEWAY_TIMEOUT_MS
            if isinstance(error, httpx.TimeoutException) or is_late:
                return progress.so_far
            return Failed(f"endpoint {endpoint.id} ended the connection without a whole answer ({type(error).__name__})")
        return outcome

    def _read(self, run: ReadyRun, endpoint: Endpoint, answer: httpx.Response, elapsed_ms: float) -> Outcome:
        status = answer.status_code
        if status in KEY_PROBLEMS:
            _log.error("endpoint %s refused the signature (%d): this is a problem of keys", endpoint.id, status)
        outcome = read_answer(status, answer.headers.get("retry-after"), run, self._clock.now(), elapsed_ms)
        return Failed(f"endpoint {endpoint.id} {outcome.error}") if isinstance(outcome, Failed) else outcome


def _data(run: ReadyRun, endpoint: Endpoint) -> PushData:
    return PushData(
        run_id=run.run_id,
        workflow=run.workflow,
        version=run.version,
        pool=run.pool,
        revision=run.revision,
        namespace=run.namespace,
        audience=endpoint.audience,
    )


def _drain(answer: httpx.Response) -> None:
    """Read a short body to its end, and throw it away. Raises TransportError: the connection ended before it, or the time did."""
    size = 0
    for piece in answer.iter_raw():
        size += len(piece)
        if size > MAX_ANSWER_BYTES:
            return
