"""Text that the server hands out and later recognises as its own: claim tokens and cursors.

`{payload}.{mac}`, both base64url without padding; the payload is compact JSON, the MAC HMAC-SHA256 (RFC 2104) over purpose,
subject and payload, length-prefixed so that no part can imitate another.
"""

import base64
import binascii
import hashlib
import hmac
import json
from collections.abc import Sequence

from aiki_push.domain.errors import SettingsError
from aiki_push.domain.values import Json

MIN_SECRET_BYTES = 32


class Seals:
    """Makes and checks sealed text. The first secret seals; all of them open, so that a secret can be replaced without a break."""

    def __init__(self, secrets: Sequence[bytes]) -> None:
        if not secrets or any(len(secret) < MIN_SECRET_BYTES for secret in secrets):
            raise SettingsError(f"AIKI_CLAIM_TOKEN_SECRET needs at least one secret of {MIN_SECRET_BYTES} bytes or more")
        self._secrets = tuple(secrets)

    def __repr__(self) -> str:
        return f"Seals(<{len(self._secrets)} secrets>)"

    def seal(self, purpose: str, subject: str, payload: Json) -> str:
        """Text that only this server can have made, good for `purpose` and `subject` alone."""
        content = json.dumps(payload, separators=(",", ":"), ensure_ascii=True).encode()
        return f"{_text(content)}.{_text(_mac(self._secrets[0], purpose, subject, content))}"

    def open(self, purpose: str, subject: str, sealed: str) -> Json | None:
        """The payload of `sealed`, or None where it was not made by `seal` for this purpose and subject."""
        content_text, _, mac_text = sealed.partition(".")
        try:
            content, mac = _raw(content_text), _raw(mac_text)
        except (binascii.Error, ValueError):
            return None
        matches = [hmac.compare_digest(_mac(secret, purpose, subject, content), mac) for secret in self._secrets]
        if not any(matches):
            return None
        payload: Json = json.loads(content)
        return payload


def _mac(secret: bytes, purpose: str, subject: str, content: bytes) -> bytes:
    parts = (purpose.encode(), subject.encode(), content)
    return hmac.digest(secret, b"".join(len(part).to_bytes(4, "big") + part for part in parts), hashlib.sha256)


def _text(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def _raw(text: str) -> bytes:
    return base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
