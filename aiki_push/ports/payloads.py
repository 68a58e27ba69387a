"""Where values live that are too large for the log."""

from typing import Protocol

from aiki_push.domain.values import PayloadReference, RunId


class PayloadStore(Protocol):
    """Bytes by owner run and SHA-256. Written before the record that names them, so a crash leaves an orphan, never a hole.

    Safe to call from any thread. Raises StorageUnavailable when the store does not answer.
    """

    def put(self, namespace: str, run_id: RunId, content: bytes) -> PayloadReference:
        """Store `content` under the run; repeating it changes nothing. Raises PayloadTooLarge above the store's limit."""
        ...

    def get(self, namespace: str, run_id: str, sha256: str) -> bytes:
        """The bytes as stored, checked against their hash. Raises NotFound."""
        ...
