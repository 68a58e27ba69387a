"""Who vouches for a push, and who checks it. The scheme is Standard Webhooks: https://www.standardwebhooks.com, version 1.0.0."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

ID_HEADER = "webhook-id"
TIMESTAMP_HEADER = "webhook-timestamp"
SIGNATURE_HEADER = "webhook-signature"


@dataclass(frozen=True, slots=True)
class VerifiedPush:
    """What a valid signature vouches for beside the body: the message's id, and when it was sent in Unix SECONDS."""

    message_id: str
    at_s: int


class Signer(Protocol):
    """Signs pushes. Safe to call from any thread; never shows a secret."""

    def sign(self, message_id: str, at_s: int, body: bytes) -> str:
        """The value of `webhook-signature`: one signature for each key in use, the newest first, separated by a space.

        Signs `message_id.at_s.body`; `at_s` is Unix SECONDS, `body` the very bytes that will be sent.
        Raises InvalidRequest: a message id or time that no verifier would accept, such as an id with a full stop in it.
        """
        ...


class Verifier(Protocol):
    """Checks pushes against the keys it trusts, of which there is at least one. Safe to call from any thread."""

    def verify(self, headers: Mapping[str, str], body: bytes, now_ms: int) -> VerifiedPush:
        """The id and time of the push, once one of its signatures matches one of the trusted keys.

        `headers` has lower-case names; a header sent twice is joined by a comma. `body` is the raw bytes as received,
        before any parsing. A push that is exactly as old, or as far ahead, as the tolerance is accepted.

        Raises SignatureRejected, and nothing else whatever it is given; its `check` is
        `headers`: one is missing, malformed or too long;
        `expired`: correctly signed, but further from `now_ms` than the tolerance, in either direction;
        `timestamp`: as far away, and not correctly signed either;
        `signature`: recent, and no signature matches a trusted key.
        """
        ...


class KeyRing(Protocol):
    """The server's signing keys. Safe to call from any thread; a change of keys shows within a minute.

    Both methods raise SettingsError when the keys cannot be read or are damaged.
    """

    def signer(self, endpoint_secret: str | None = None) -> Signer:
        """Signs with the endpoint's own `whsec_…` secret where it has one, else with each of the server's keys.

        Use it for one batch and ask again. Raises SettingsError: `endpoint_secret` is no such secret (it is not shown).
        """
        ...

    def public_keys(self) -> tuple[str, ...]:
        """The `whpk_…` texts of the keys that sign now, the newest first, for endpoints to trust."""
        ...


def signed_headers(signer: Signer, message_id: str, at_s: int, body: bytes) -> dict[str, str]:
    """The three headers that travel with `body`. Raises what `Signer.sign` does."""
    return {
        ID_HEADER: message_id,
        TIMESTAMP_HEADER: str(at_s),
        SIGNATURE_HEADER: signer.sign(message_id, at_s, body),
    }
