"""A publisher with everything it needs, for tests that push over loopback."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from aiki_push.adapters.delivery.http_push import EndpointsOf, HttpPushPublisher, Turn
from aiki_push.adapters.delivery.private_addresses import Resolve, resolve_host
from aiki_push.adapters.signing.key_ring import CachedKeyRing
from aiki_push.adapters.signing.key_set import ActiveKey, KeySet
from aiki_push.adapters.system import SystemClock
from aiki_push.domain.endpoints import Endpoint
from aiki_push.ports.clock import Clock
from aiki_push.ports.publisher import Outcome, ReadyRun
from aiki_push.ports.signing import KeyRing
from tests.unit.adapters.delivery.delivery_examples import READY_AT, ready_run

SECRET = "whsk_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="
PUBLIC = "whpk_A6EHv/POEL4dcN0Y50vAmWfk1jCbpQ1fHdyGZBJVMbg="
SHARED = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYX"

KEYS = KeySet(active=ActiveKey(secret=SECRET, created_at=READY_AT))


def beginning_with(place: int) -> Turn:
    """Endpoints are tried in the order in which they are listed, from this one on."""

    def turn(_: ReadyRun) -> int:
        return place

    return turn


@contextmanager
def publisher(
    *endpoints: Endpoint,
    listing: EndpointsOf | None = None,
    keys: KeyRing | None = None,
    clock: Clock | None = None,
    turn: Turn | None = None,
    push_timeout_ms: int = 3_000,
    allow_private_addresses: bool = True,
    concurrency: int = 32,
    resolve: Resolve = resolve_host,
) -> Iterator[HttpPushPublisher]:
    """Pushes to those of `endpoints` in the run's namespace, signed by SECRET where nothing else is said."""
    clock = clock or SystemClock()
    made = HttpPushPublisher(
        listing or (lambda namespace: [endpoint for endpoint in endpoints if endpoint.namespace == namespace]),
        keys or CachedKeyRing(lambda: KEYS, clock),
        clock,
        push_timeout_ms=push_timeout_ms,
        allow_private_addresses=allow_private_addresses,
        concurrency=concurrency,
        resolve=resolve,
        turn=turn or beginning_with(0),
    )
    try:
        yield made
    finally:
        made.close()


def push_once(*endpoints: Endpoint, push_timeout_ms: int = 3_000) -> Outcome:
    """The outcome of offering one run."""
    with publisher(*endpoints, push_timeout_ms=push_timeout_ms) as made:
        return only(made.publish([ready_run()]))


def only(outcomes: Sequence[Outcome]) -> Outcome:
    [outcome] = outcomes
    return outcome
