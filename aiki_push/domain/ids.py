"""Ids and keys, made from what is handed in: the caller brings the time and the randomness."""

import hashlib
from base64 import b32hexencode, urlsafe_b64encode

_CROCKFORD = "ABCDEFGHJKMNPQRSTVWXYZ"
"""The digits of value 10 to 31 in Crockford's base 32."""

_EXTENDED_HEX = "ABCDEFGHIJKLMNOPQRSTUV"
"""The same in RFC 4648's base32hex and in `int(..., base=32)`."""

_TO_CROCKFORD = str.maketrans(_EXTENDED_HEX, _CROCKFORD)
_FROM_CROCKFORD = str.maketrans(_CROCKFORD, _EXTENDED_HEX)


def ulid(at_ms: int, randomness: bytes) -> str:
    """26 characters that sort by `at_ms` (0 to 2^48 - 1): its 48 bits and the 80 of `randomness` (github.com/ulid/spec).

    Raises:
        ValueError: `randomness` is not 10 bytes.
        OverflowError: `at_ms` is out of range.
    """
    if len(randomness) != 10:
        raise ValueError("the randomness of a ULID is 10 bytes")
    return _crockford(at_ms.to_bytes(6, "big") + randomness)


def ulid_timestamp_ms(text: str) -> int:
    """The `at_ms` that `ulid` was given; `text` matches `RUN_ID_PATTERN`."""
    return int(text[:10].translate(_FROM_CROCKFORD), base=32)


def derived_id(*parts: str) -> str:
    """The same id for the same parts, always: 128 bits of their SHA-256. An `Identifier`, and a `RunId` that holds no time."""
    digest = hashlib.sha256()
    for part in parts:
        encoded = part.encode("utf-8", "surrogatepass")
        digest.update(len(encoded).to_bytes(8, "big") + encoded)
    return _crockford(digest.digest()[:16])


def join_key(first: str, *rest: str) -> str:
    """The parts with `|` between them. `%` and `|` within a part are escaped, so no two lists of parts make the same key."""
    return "|".join(part.replace("%", "%25").replace("|", "%7C") for part in (first, *rest))


def token_text(raw: bytes) -> str:
    """`raw` as base64url without padding (RFC 4648, section 5): letters, digits, `-` and `_`."""
    return urlsafe_b64encode(raw).rstrip(b"=").decode("ascii")


def _crockford(raw: bytes) -> str:
    """16 bytes in 26 digits of Crockford's base 32, the first of them 0 to 7."""
    return b32hexencode(bytes(4) + raw)[6:].decode("ascii").translate(_TO_CROCKFORD)
