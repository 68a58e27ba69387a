"""HMAC-SHA256 by a secret that the server shares with one endpoint, and with no other: either could sign for the other."""

import hashlib
import hmac
from base64 import b64encode

from aiki_push.adapters.signing.key_text import decode_key

SCHEME = "v1"
SECRET_PREFIX = "whsec_"

SECRET_BYTES = range(24, 64 + 1)
"""Standard Webhooks, "Signature scheme"."""


class HmacSecret:
    """Both signs and verifies: `whsec_` and the base64 of 24 to 64 bytes."""

    __slots__ = ("_secret",)
    scheme = SCHEME

    def __init__(self, text: str) -> None:
        """Raises SettingsError: `text` is not of that form. It is never shown."""
        expected = f"An endpoint's shared secret is {SECRET_PREFIX} and the base64 of 24 to 64 bytes"
        self._secret = decode_key(text, SECRET_PREFIX, SECRET_BYTES, expected)

    def __repr__(self) -> str:
        return "HmacSecret(not shown)"

    def sign(self, content: bytes) -> str:
        """`v1,` and the base64 of the 32 bytes of the digest."""
        return f"{SCHEME},{b64encode(self._digest(content)).decode('ascii')}"

    def vouches_for(self, content: bytes, signature: bytes) -> bool:
        """Whether `signature` was made for `content` with this secret; takes the same time wherever they differ."""
        return hmac.compare_digest(self._digest(content), signature)

    def _digest(self, content: bytes) -> bytes:
        return hmac.digest(self._secret, content, hashlib.sha256)
