"""Ed25519 keys: the server signs with the secret one, endpoints need only the public one."""

from base64 import b64encode

from nacl.exceptions import BadSignatureError
from nacl.signing import SigningKey, VerifyKey

from aiki_push.adapters.signing.key_text import decode_key, encode_key
from aiki_push.domain.errors import SettingsError
from aiki_push.ports.entropy import Entropy

SCHEME = "v1a"
SECRET_PREFIX = "whsk_"
PUBLIC_PREFIX = "whpk_"

SEED_BYTES = 32
PUBLIC_BYTES = 32
SIGNATURE_BYTES = 64
"""RFC 8032, section 5.1."""


class Ed25519PublicKey:
    """A key that endpoints trust: `whpk_` and the base64 of 32 bytes."""

    __slots__ = ("_key",)
    scheme = SCHEME

    def __init__(self, text: str) -> None:
        """Raises SettingsError: `text` is not of that form."""
        expected = f"A public signing key is {PUBLIC_PREFIX} and the base64 of {PUBLIC_BYTES} bytes"
        self._key = VerifyKey(decode_key(text, PUBLIC_PREFIX, (PUBLIC_BYTES,), expected))

    def vouches_for(self, content: bytes, signature: bytes) -> bool:
        """Whether `signature` was made for `content` with the secret key that belongs to this one."""
        if len(signature) != SIGNATURE_BYTES:
            return False
        try:
            self._key.verify(content, signature)
        except BadSignatureError:
            return False
        return True


class Ed25519SecretKey:
    """A key the server signs with: `whsk_` and the base64 of the 32-byte seed, or of the 64 bytes of seed and public key.

    The specification says no more than "standard ed25519 key pair" and implementations write either; we write the seed.
    """

    __slots__ = ("_key",)

    def __init__(self, text: str) -> None:
        """Raises SettingsError: `text` is not of that form, or its public half belongs to another key. It is never shown."""
        expected = f"A secret signing key is {SECRET_PREFIX} and the base64 of 32 bytes (seed) or 64 (seed and public key)"
        raw = decode_key(text, SECRET_PREFIX, (SEED_BYTES, SEED_BYTES + PUBLIC_BYTES), expected)
        self._key = SigningKey(raw[:SEED_BYTES])
        if raw[SEED_BYTES:] not in (b"", bytes(self._key.verify_key)):
            raise SettingsError(f"{expected}; the two halves of this one do not belong together")

    def __repr__(self) -> str:
        return f"Ed25519SecretKey(public {self.public_text})"

    @property
    def public_text(self) -> str:
        """The `whpk_…` text that endpoints are to trust."""
        return encode_key(PUBLIC_PREFIX, bytes(self._key.verify_key))

    def sign(self, content: bytes) -> str:
        """`v1a,` and the base64 of the 64 bytes of the signature."""
        return f"{SCHEME},{b64encode(self._key.sign(content).signature).decode('ascii')}"


def generate_signing_key(entropy: Entropy) -> str:
    """The `whsk_…` text of a new secret key. Whoever has it can sign pushes."""
    return encode_key(SECRET_PREFIX, entropy.token(SEED_BYTES))


def public_key_of(secret: str) -> str:
    """The `whpk_…` text that belongs to a `whsk_…` text. Raises SettingsError, without showing it: that is no secret key."""
    return Ed25519SecretKey(secret).public_text
