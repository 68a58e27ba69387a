"""One signed request to one endpoint, and what came of it."""

import logging
from collections.abc import Iterator
from dataclasses import dataclass
from http.cookiejar import CookieJar, DefaultCookiePolicy
from urllib.parse import urlsplit

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
"""Idle connections are dropped before servers drop them (uvicorn and Node after 5 s), so that a push rarely meets a closed one."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Unreachable:
    """Nothing was sent; `reason` says why, to be read after the endpoint's name."""

    reason: str


@dataclass(slots=True)
class Progress:
    """Whether a whole request is on its way and not answered yet; to be looked at by whoever stops waiting for the answer."""

    is_sent: bool = False

    def sending(self, body: bytes) -> Iterator[bytes]:
        """`body` in one piece, noting when it has been sent."""
        yield body
        self.is_sent = True


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
        """What came of offering `run` to `endpoint`; a failure's error is to be read after the endpoint's name.

        Connecting may take half of `timeout_ms`, each later wait all of it.
        """
        refusal = self._refusal(endpoint)
        if refusal is not None:
            return Unreachable(refusal)
        now = self._clock.now()
        body = encode_push(_data(run, endpoint), now)
        try:
            signer = self._keys.signer(endpoint.secret)
            headers = signed_headers(signer, webhook_id(run.run_id, run.revision, run.offer), now // 1_000, body)
        except SettingsError as error:
            _log.error("the push to endpoint %s could not be signed: %s", endpoint.id, error)
            return Failed("cannot be sent a signed push; the server's log says what is wrong with the keys")
        return self._post(run, endpoint, headers | {"content-length": str(len(body))}, body, timeout_ms, progress)

    def close(self) -> None:
        """Close all connections."""
        self._http.close()

    def _refusal(self, endpoint: Endpoint) -> str | None:
        try:
            check_url(endpoint.url, allow_loopback_http=self._allow_private_addresses)
            if self._allow_private_addresses:
                return None
            found = private_address(urlsplit(endpoint.url).hostname or "", self._resolve)
        except InvalidRequest as error:
            return f"cannot be pushed to: {error}"
        except (OSError, UnicodeError) as error:
            return f"has a host that cannot be resolved: {error}"
        return f"has the address {found}, which is not public; the server's settings do not allow that" if found else None

    def _post(
        self, run: ReadyRun, endpoint: Endpoint, headers: dict[str, str], body: bytes, timeout_ms: float, progress: Progress
    ) -> Outcome | Unreachable:
        progress.is_sent = False
        started_ms = self._clock.monotonic_ms()
        timeout = httpx.Timeout(timeout_ms / 1_000, connect=timeout_ms / 2_000)
        try:
            with self._http.stream("POST", endpoint.url, content=progress.sending(body), headers=headers, timeout=timeout) as answer:
                _drain(answer)
        except (httpx.ConnectError, httpx.ConnectTimeout, httpx.InvalidURL, UnicodeError) as error:
            return Unreachable(f"cannot be connected to: {error or type(error).__name__}")
        except httpx.TransportError as error:
            is_timeout = isinstance(error, httpx.TimeoutException) or self._elapsed_ms(started_ms) >= GATEWAY_TIMEOUT_MS
            if is_timeout and progress.is_sent:
                return Published()
            return Failed(f"ended the connection without a whole answer ({type(error).__name__})")
        progress.is_sent = False
        if answer.status_code in KEY_PROBLEMS:
            _log.error("endpoint %s refused the signature (%d): this is a problem of keys", endpoint.id, answer.status_code)
        retry_after = answer.headers.get("retry-after")
        return read_answer(answer.status_code, retry_after, run, self._clock.now(), self._elapsed_ms(started_ms))

    def _elapsed_ms(self, started_ms: float) -> float:
        return self._clock.monotonic_ms() - started_ms


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
    """Read a short body to its end. Raises TransportError: the connection ended before it; a slow one is left unread."""
    size = 0
    try:
        for piece in answer.iter_raw():
            size += len(piece)
            if size > MAX_ANSWER_BYTES:
                return
    except httpx.TimeoutException:
        return
