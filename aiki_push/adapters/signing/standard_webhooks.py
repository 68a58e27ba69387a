"""Signing and verifying by Standard Webhooks 1.0.0 (spec/standard-webhooks.md, "Signature scheme" and "Webhook headers")."""

import binascii
import re
from base64 import b64decode
from collections.abc import Iterator, Mapping, Sequence
from typing import Protocol

from aiki_push.adapters.signing import ed25519, hmac_sha256
from aiki_push.adapters.signing.ed25519 import Ed25519PublicKey
from aiki_push.adapters.signing.hmac_sha256 import HmacSecret
from aiki_push.domain.errors import InvalidRequest, SettingsError, SignatureRejected
from aiki_push.ports.signing import ID_HEADER, SIGNATURE_HEADER, TIMESTAMP_HEADER, VerifiedPush

MAX_SIGNATURES_LENGTH = 2_048
"""Characters of `webhook-signature`: room for 22 Ed25519 signatures, and a bound on the work that a stranger can cause."""

# Without full stops, as the specification asks: `a.1.2.x` must not be both the message a.1 and the message a.
_MESSAGE_ID = re.compile(r"[A-Za-z0-9_-]{1,256}")
# One spelling for each second, so that the text and the number say the same.
_SECONDS = re.compile(r"0|[1-9][0-9]{0,10}")
# `scheme,signature` by single spaces. A comma within either would be a header that was sent twice.
_SIGNATURES = re.compile(r"[!-+\--~]+,[!-+\--~]+(?: [!-+\--~]+,[!-+\--~]+)*")


class SecretKey(Protocol):
    """A key that signs."""

    def sign(self, content: bytes) -> str:
        """One signature: the scheme's name, a comma, base64."""
        ...


class TrustedKey(Protocol):
    """A key that tells whether a signature of its scheme is genuine."""

    scheme: str

    def vouches_for(self, content: bytes, signature: bytes) -> bool:
        """Whether `signature` was made for `content` by the key's owner."""
        ...


def signed_content(message_id: str, at_s: int, body: bytes) -> bytes:
    """The bytes that are signed: id, Unix SECONDS and raw body, joined by full stops.

    Raises InvalidRequest: an id or time that `StandardVerifier` would refuse.
    """
    if not _MESSAGE_ID.fullmatch(message_id):
        raise _unsignable("message_id", "1 to 256 letters, digits, _ or -")
    if not _SECONDS.fullmatch(str(at_s)):
        raise _unsignable("at_s", "whole seconds since 1970, at most 11 digits")
    return f"{message_id}.{at_s}.".encode("ascii") + body


def _unsignable(field: str, expected: str) -> InvalidRequest:
    return InvalidRequest(
        f"A push cannot be signed with this {field}.", errors=[{"field": field, "message": f"must be {expected}"}]
    )


class StandardSigner:
    """Signs with every one of `keys`, in their order."""

    def __init__(self, keys: Sequence[SecretKey]) -> None:
        self._keys = tuple(keys)

    def sign(self, message_id: str, at_s: int, body: bytes) -> str:
        """As `aiki_push.ports.signing.Signer`."""
        content = signed_content(message_id, at_s, body)
        return " ".join(key.sign(content) for key in self._keys)


class StandardVerifier:
    """Trusts the `whpk_…` public keys and `whsec_…` shared secrets in `trusted_keys`, and clocks up to `tolerance_ms` apart."""

    def __init__(self, trusted_keys: Sequence[str], tolerance_ms: int) -> None:
        """Raises SettingsError: no key at all, or one that is malformed or secret; it is named by its place, never shown."""
        if not trusted_keys:
            raise SettingsError("No trusted signing keys. Give at least one public key (whpk_…) of the server that pushes here.")
        self._keys = tuple(_trusted_key(text, place) for place, text in enumerate(trusted_keys, start=1))
        self._tolerance_ms = tolerance_ms

    def verify(self, headers: Mapping[str, str], body: bytes, now_ms: int) -> VerifiedPush:
        """As `aiki_push.ports.signing.Verifier`."""
        message_id = _header(headers, ID_HEADER, _MESSAGE_ID)
        at_s = int(_header(headers, TIMESTAMP_HEADER, _SECONDS))
        signatures = _header(headers, SIGNATURE_HEADER, _SIGNATURES)
        age_ms = now_ms - at_s * 1_000
        is_recent = abs(age_ms) <= self._tolerance_ms
        # Before its age is judged: a slow but genuine push is a matter of clocks, not of keys, and is reported as such.
        is_signed = self._is_signed(signed_content(message_id, at_s, body), signatures)
        if is_signed and is_recent:
            return VerifiedPush(message_id, at_s)
        when = f"sent {abs(age_ms)} ms {'ago' if age_ms >= 0 else 'ahead of this clock'}, with {self._tolerance_ms} ms allowed"
        if is_signed:
            raise SignatureRejected("expired", f"Correctly signed, but {when}. Compare the clocks, or it was held up on the way.")
        if not is_recent:
            raise SignatureRejected("timestamp", f"Not signed by a trusted key, and {when}.")
        raise SignatureRejected("signature", "No signature matches a trusted key. Compare the trusted keys with the server's.")

    def _is_signed(self, content: bytes, signatures: str) -> bool:
        return any(
            key.vouches_for(content, signature)
            for scheme, signature in _decoded(signatures)
            for key in self._keys
            if key.scheme == scheme
        )


def _trusted_key(text: str, place: int) -> TrustedKey:
    try:
        if text.startswith(ed25519.SECRET_PREFIX):
            raise SettingsError("A secret signing key belongs to the server alone; replace it, and trust its public key (whpk_…)")
        return HmacSecret(text) if text.startswith(hmac_sha256.SECRET_PREFIX) else Ed25519PublicKey(text)
    except SettingsError as error:
        raise SettingsError(f"Trusted key {place}: {error}") from None


def _header(headers: Mapping[str, str], name: str, shape: re.Pattern[str]) -> str:
    value = headers.get(name)
    if value is None:
        raise SignatureRejected("headers", f"{name} is missing.")
    if len(value) > MAX_SIGNATURES_LENGTH or not shape.fullmatch(value):
        raise SignatureRejected("headers", f"{name} is malformed, too long or sent twice.")
    return value


def _decoded(signatures: str) -> Iterator[tuple[str, bytes]]:
    """Scheme and bytes of each signature; those that are not base64 are left out, since no key of ours can match them."""
    for one in signatures.split(" "):
        scheme, _, text = one.partition(",")
        try:
            yield scheme, b64decode(text, validate=True)
        except binascii.Error:
            continue
