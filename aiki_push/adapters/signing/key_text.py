"""Keys as text: a prefix that says which kind, then standard base64 (Standard Webhooks, "Signature scheme")."""

from base64 import b64decode, b64encode
from collections.abc import Container

from aiki_push.domain.errors import SettingsError


def encode_key(prefix: str, raw: bytes) -> str:
    """The text of a key."""
    return prefix + b64encode(raw).decode("ascii")


def decode_key(text: str, prefix: str, sizes: Container[int], expected: str) -> bytes:
    """The bytes of a key.

    Raises SettingsError: another prefix, no base64, or a number of bytes that is not in `sizes`. The message begins with
    `expected`, a sentence without its full stop, and never shows any part of `text`.
    """
    if not text.startswith(prefix):
        raise SettingsError(f"{expected}; this text does not start with {prefix}")
    try:
        raw = b64decode(text.removeprefix(prefix), validate=True)
    except ValueError:
        raw = None
    if raw is None:
        raise SettingsError(f"{expected}; what follows {prefix} is not base64")
    if len(raw) not in sizes:
        raise SettingsError(f"{expected}; this one has {len(raw)} bytes")
    return raw
