"""Payloads in the table, each beside the items of its run."""

import zlib
from hashlib import sha256

from aiki_push.adapters.storage import keys
from aiki_push.adapters.storage.formats import FORMAT
from aiki_push.adapters.storage.retrying import RetryingTable
from aiki_push.adapters.storage.table import Absent, Item, Put, Table, WriteRefused
from aiki_push.domain.errors import InternalError, NotFound, PayloadTooLarge
from aiki_push.domain.values import PayloadReference, RunId
from aiki_push.ports.clock import Clock
from aiki_push.ports.entropy import Entropy

MAX_CONTENT_BYTES = 390 * 1024
"""An item holds 400 KB; zlib adds less than 1 KB to content that does not shrink."""


class TablePayloadStore:
    """A PayloadStore on any Table, for values up to `MAX_CONTENT_BYTES`. Attributes: `v`, `d` (zlib)."""

    def __init__(self, table: Table, clock: Clock, entropy: Entropy) -> None:
        self._table = RetryingTable(table, clock, entropy)

    def put(self, namespace: str, run_id: RunId, content: bytes) -> PayloadReference:
        """See PayloadStore."""
        if len(content) > MAX_CONTENT_BYTES:
            raise PayloadTooLarge(
                f"a value of {len(content)} bytes; this payload store takes up to {MAX_CONTENT_BYTES}",
                size=len(content),
                limit=MAX_CONTENT_BYTES,
            )
        reference = PayloadReference(run_id=run_id, sha256=sha256(content).hexdigest(), size=len(content))
        key = keys.payload(namespace, run_id, reference.sha256)
        item: Item = {"PK": key.pk, "SK": key.sk, "v": FORMAT, "d": zlib.compress(content)}
        try:
            self._table.write([Put(item, Absent())], token=reference.sha256[:36])
        except WriteRefused:
            return reference
        return reference

    def get(self, namespace: str, run_id: str, sha256: str) -> bytes:
        """See PayloadStore. Raises InternalError where the stored bytes are not those that were put."""
        item = self._table.get(keys.payload(namespace, run_id, sha256))
        if item is None:
            raise NotFound(f"there is no payload {sha256} of run {run_id} in this namespace", run_id=run_id, sha256=sha256)
        return _checked(item, run_id, sha256)


def _checked(item: Item, run_id: str, digest: str) -> bytes:
    packed = item.get("d")
    try:
        content = zlib.decompress(packed) if isinstance(packed, bytes) else b""
    except zlib.error:
        content = b""
    if sha256(content).hexdigest() != digest:
        raise InternalError(f"the payload {digest} of run {run_id} was changed in the table: its hash does not match")
    return content
