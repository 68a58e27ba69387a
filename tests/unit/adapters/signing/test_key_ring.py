from base64 import b64encode

import pytest

from aiki_push.adapters.signing.ed25519 import public_key_of
from aiki_push.adapters.signing.key_ring import CachedKeyRing
from aiki_push.adapters.signing.key_set import ActiveKey, KeySet
from aiki_push.adapters.signing.standard_webhooks import StandardVerifier
from aiki_push.domain.errors import SettingsError
from aiki_push.domain.values import DurationMs, TimestampMs
from aiki_push.ports.signing import KeyRing, VerifiedPush, signed_headers


class SetClock:
    """Stands still until it is set."""

    def __init__(self) -> None:
        self.at = TimestampMs(1_800_000_000_000)

    def now(self) -> TimestampMs:
        return self.at

    def monotonic_ms(self) -> float:
        return 0.0

    def sleep(self, duration_ms: DurationMs) -> None:
        self.at = TimestampMs(self.at + duration_ms)


class CountedSource:
    """A key set in memory; `reads` counts how often it was read."""

    def __init__(self, keys: KeySet | None) -> None:
        self.keys = keys
        self.reads = 0

    def read(self) -> KeySet:
        self.reads += 1
        if self.keys is None:
            raise SettingsError("damaged")
        return self.keys


def secret_key(seed_byte: int) -> str:
    return "whsk_" + b64encode(bytes([seed_byte] * 32)).decode()


OLD, NEW = secret_key(1), secret_key(2)
SHARED = "whsec_" + b64encode(bytes(32)).decode()
FIRST = KeySet(active=ActiveKey(secret=OLD, created_at=TimestampMs(0)))
ROTATED = FIRST.rotated(NEW, TimestampMs(0))
AT_S = 1_800_000_000


def is_signed_for(ring: KeyRing, trusted: str, endpoint_secret: str | None = None) -> bool:
    headers = signed_headers(ring.signer(endpoint_secret), "msg_1", AT_S, b"{}")
    return StandardVerifier([trusted], 0).verify(headers, b"{}", AT_S * 1_000) == VerifiedPush("msg_1", AT_S)


def test_keys_are_read_at_first_use_and_again_when_the_reading_is_a_minute_old() -> None:
    clock, source = SetClock(), CountedSource(FIRST)
    ring = CachedKeyRing(source.read, clock)
    reads = [source.reads]
    for step_ms in (0, 59_999, 1, 59_999, 1):
        clock.sleep(DurationMs(step_ms))
        ring.public_keys()
        ring.signer()
        reads.append(source.reads)

    assert reads == [0, 1, 1, 2, 2, 3]


def test_a_rotation_shows_after_a_minute() -> None:
    clock, source = SetClock(), CountedSource(FIRST)
    ring = CachedKeyRing(source.read, clock)
    before = ring.public_keys()
    source.keys = ROTATED
    meanwhile = ring.public_keys()
    clock.sleep(DurationMs(60_000))

    assert (before, meanwhile) == ((public_key_of(OLD),), (public_key_of(OLD),))
    assert ring.public_keys() == (public_key_of(NEW), public_key_of(OLD))


def test_a_clock_that_is_set_back_does_not_keep_an_old_reading_alive() -> None:
    clock, source = SetClock(), CountedSource(FIRST)
    ring = CachedKeyRing(source.read, clock)
    ring.public_keys()
    source.keys = ROTATED
    clock.at = TimestampMs(clock.at - 1)

    assert ring.public_keys() == (public_key_of(NEW), public_key_of(OLD))


def test_during_a_rotation_an_endpoint_may_trust_either_key() -> None:
    ring = CachedKeyRing(CountedSource(ROTATED).read, SetClock())

    assert [is_signed_for(ring, public_key_of(OLD)), is_signed_for(ring, public_key_of(NEW))] == [True, True]


def test_an_endpoint_with_a_secret_of_its_own_gets_that_signature_alone_and_needs_no_key_set() -> None:
    source = CountedSource(None)
    ring = CachedKeyRing(source.read, SetClock())

    assert is_signed_for(ring, SHARED, endpoint_secret=SHARED)
    assert ring.signer(SHARED).sign("msg_1", AT_S, b"{}").count(",") == 1
    assert source.reads == 0


def test_a_malformed_endpoint_secret_is_refused_and_not_shown() -> None:
    ring = CachedKeyRing(CountedSource(FIRST).read, SetClock())

    with pytest.raises(SettingsError, match="whsec_ and the base64 of 24 to 64 bytes") as refused:
        ring.signer("whsec_c2hvcnQ=")

    assert "c2hvcnQ" not in str(refused.value)


def test_keys_that_become_unreadable_are_an_error_as_soon_as_they_are_read_again() -> None:
    clock, source = SetClock(), CountedSource(FIRST)
    ring = CachedKeyRing(source.read, clock)
    ring.signer()
    source.keys = None
    clock.sleep(DurationMs(60_000))

    for use in (ring.signer, ring.public_keys):
        with pytest.raises(SettingsError, match="damaged"):
            use()


def test_a_ring_and_its_signer_do_not_show_secrets() -> None:
    ring = CachedKeyRing(CountedSource(FIRST).read, SetClock())

    assert OLD[5:30] not in f"{ring} {ring.signer()} {ring!r} {ring.signer()!r} {vars(ring)}"
