"""The signing keys in a file, for a server that runs on one machine."""

import os
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

from aiki_push.adapters.signing.ed25519 import generate_signing_key
from aiki_push.adapters.signing.key_set import ActiveKey, KeySet, parse_key_set
from aiki_push.domain.errors import SettingsError
from aiki_push.ports.clock import Clock
from aiki_push.ports.entropy import Entropy


class KeyFile:
    """A key set in the file `path`, which only its owner can read.

    A change is written beside it as `path` + `.new` and moved into place, so readers see the old set or the new one. The
    new file is also the lock: of two changes at once, the second is refused. Every method raises SettingsError when the file
    cannot be read or written, or is damaged.
    """

    def __init__(self, path: Path, clock: Clock, entropy: Entropy) -> None:
        self._path = path
        self._draft = path.with_name(path.name + ".new")
        self._clock = clock
        self._entropy = entropy

    def read(self) -> KeySet:
        """The set as it is now."""
        try:
            document = self._path.read_bytes()
        except FileNotFoundError:
            raise SettingsError(f"There are no signing keys in {self._path}. Make them with `aiki-push keys init`.") from None
        except OSError as error:
            raise SettingsError(f"The signing keys in {self._path} cannot be read: {error.strerror}.") from error
        return parse_key_set(document, str(self._path))

    def init(self) -> str:
        """Make the file with a new key, and return its public key. Raises SettingsError: the file exists."""
        return self._change(self._first).public_keys()[0]

    def rotate(self) -> str:
        """Make a new key active and let the active one retire; return the new public key, for endpoints to trust."""
        return self._change(lambda: self.read().rotated(generate_signing_key(self._entropy), self._clock.now())).public_keys()[0]

    def retire(self) -> tuple[str, ...]:
        """Drop the retiring keys for good, and return their public keys. Raises SettingsError: none, or too recently rotated."""
        retiring = self.read().public_keys()[1:]
        self._change(lambda: self.read().retired(self._clock.now()))
        return retiring

    def _first(self) -> KeySet:
        if self._path.exists():
            raise SettingsError(f"{self._path} exists. Replace the key in it with `aiki-push keys rotate`.")
        return KeySet(active=ActiveKey(secret=generate_signing_key(self._entropy), created_at=self._clock.now()))

    def _change(self, decide: Callable[[], KeySet]) -> KeySet:
        """Write what `decide` returns; it is called while nobody else can change the file."""
        try:
            with open(self._draft, "xb", opener=_for_its_owner_alone) as file, ExitStack() as undo:
                undo.callback(self._draft.unlink)
                keys = decide()
                file.write(keys.encoded())
                file.flush()
                os.fsync(file.fileno())
                self._draft.replace(self._path)
                undo.pop_all()
        except FileExistsError:
            raise SettingsError(
                f"{self._draft} exists: another change is in progress, or one was cut short. In that case delete it and retry."
            ) from None
        except OSError as error:
            raise SettingsError(f"The signing keys in {self._path} cannot be written: {error.strerror}.") from error
        return keys


def _for_its_owner_alone(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)
