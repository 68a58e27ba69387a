"""The server's Ed25519 keys as one JSON document, for a file or a secret store: one key is active, others retire.

All of them sign, so an endpoint that trusts either the old or the new key keeps working through a rotation.
"""

from typing import Annotated, Literal

from pydantic import AfterValidator, ConfigDict, Field, ValidationError

from aiki_push.adapters.signing.ed25519 import public_key_of
from aiki_push.domain.errors import SettingsError
from aiki_push.domain.values import Frozen, TimestampMs

KEY_CACHE_MS = 60_000
"""How long a process may go on using the set that it read."""

MAX_RETIRING = 8
"""Every key adds a signature to every push, and `webhook-signature` has a limit."""


def _secret_key(text: str) -> str:
    try:
        public_key_of(text)
    except SettingsError as error:
        raise ValueError(str(error)) from None
    return text


SecretKeyText = Annotated[str, AfterValidator(_secret_key), Field(repr=False)]


class ActiveKey(Frozen):
    """The key that endpoints should trust from now on."""

    secret: SecretKeyText
    created_at: TimestampMs


class RetiringKey(Frozen):
    """A key that still signs, until every endpoint trusts its successor."""

    secret: SecretKeyText
    created_at: TimestampMs
    retiring_since: TimestampMs


class KeySet(Frozen):
    """All keys of one server; `retiring` has the latest first."""

    model_config = ConfigDict(hide_input_in_errors=True)

    version: Literal[1] = 1
    active: ActiveKey
    retiring: tuple[RetiringKey, ...] = Field(default=(), max_length=MAX_RETIRING)

    def secrets(self) -> tuple[str, ...]:
        """The `whsk_…` texts of every key that signs, the newest first."""
        return (self.active.secret, *(key.secret for key in self.retiring))

    def public_keys(self) -> tuple[str, ...]:
        """The `whpk_…` texts of every key that signs, the newest first."""
        return tuple(public_key_of(secret) for secret in self.secrets())

    def rotated(self, secret: str, now: TimestampMs) -> "KeySet":
        """With `secret` active and the key that was active retiring. Raises SettingsError: too many are retiring already."""
        if len(self.retiring) == MAX_RETIRING:
            raise SettingsError(f"{MAX_RETIRING} keys are retiring, which is the limit. Run `aiki-push keys retire` first.")
        retiring = RetiringKey(secret=self.active.secret, created_at=self.active.created_at, retiring_since=now)
        return KeySet(active=ActiveKey(secret=secret, created_at=now), retiring=(retiring, *self.retiring))

    def retired(self, now: TimestampMs) -> "KeySet":
        """With the active key alone.

        Raises SettingsError: none is retiring; or one has retired for no longer than KEY_CACHE_MS, so that a process may
        still sign with it alone.
        """
        if not self.retiring:
            raise SettingsError(
                "No key is retiring. Run `aiki-push keys rotate` first, and give endpoints time to trust the new key."
            )
        wait_ms = max(key.retiring_since for key in self.retiring) + KEY_CACHE_MS - now
        if wait_ms >= 0:
            raise SettingsError(
                f"The last rotation is too recent: some process may not know of it yet. Retry in {wait_ms + 1} ms."
            )
        return KeySet(active=self.active)

    def encoded(self) -> bytes:
        """The document, secrets included, as `parse_key_set` reads it."""
        return self.model_dump_json(indent=2).encode() + b"\n"


def parse_key_set(document: bytes, source: str) -> KeySet:
    """The keys in `document`. Raises SettingsError: damaged, or of another version; it names `source` and the field, no value."""
    try:
        return KeySet.model_validate_json(document, strict=True)
    except ValidationError as error:
        first = error.errors(include_input=False, include_context=False)[0]
    field = ".".join(map(str, first["loc"])) or "document"
    raise SettingsError(f"The signing keys in {source} are damaged, or of a newer release. {field}: {first['msg']}.")
