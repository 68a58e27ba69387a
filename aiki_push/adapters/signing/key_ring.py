"""The signing keys as the running server sees them."""

from collections.abc import Callable
from dataclasses import dataclass

from aiki_push.adapters.signing.ed25519 import Ed25519SecretKey
from aiki_push.adapters.signing.hmac_sha256 import HmacSecret
from aiki_push.adapters.signing.key_set import KEY_CACHE_MS, KeySet
from aiki_push.adapters.signing.standard_webhooks import StandardSigner
from aiki_push.domain.values import TimestampMs
from aiki_push.ports.clock import Clock
from aiki_push.ports.signing import Signer


@dataclass(frozen=True, slots=True)
class _Reading:
    read_at: TimestampMs
    signer: Signer
    public_keys: tuple[str, ...]


class CachedKeyRing:
    """Reads the key set by `read` at first use and again when the reading is KEY_CACHE_MS old; threads may read at the same time.

    A set that cannot be read is an error at once: signing on with an old set would hide it until endpoints refuse the pushes.
    """

    def __init__(self, read: Callable[[], KeySet], clock: Clock) -> None:
        self._read = read
        self._clock = clock
        self._latest: _Reading | None = None

    def signer(self, endpoint_secret: str | None = None) -> Signer:
        """As `aiki_push.ports.signing.KeyRing`."""
        if endpoint_secret is not None:
            return StandardSigner([HmacSecret(endpoint_secret)])
        return self._current().signer

    def public_keys(self) -> tuple[str, ...]:
        """As `aiki_push.ports.signing.KeyRing`."""
        return self._current().public_keys

    def _current(self) -> _Reading:
        now = self._clock.now()
        latest = self._latest
        # Wall-clock time, since a process that was frozen may not see the time pass on the other one; set back, it counts as old.
        if latest is None or not 0 <= now - latest.read_at < KEY_CACHE_MS:
            keys = self._read()
            signer = StandardSigner([Ed25519SecretKey(secret) for secret in keys.secrets()])
            latest = self._latest = _Reading(now, signer, keys.public_keys())
        return latest
