"""Payloads as files: `{root}/{namespace}/{run_id}/{sha256}`."""

import os
import re
from hashlib import sha256
from pathlib import Path
from tempfile import NamedTemporaryFile

from aiki_push.domain.errors import InternalError, InvalidRequest, NotFound, PayloadTooLarge, StorageUnavailable
from aiki_push.domain.values import NAMESPACE_PATTERN, RUN_ID_PATTERN, PayloadReference, RunId

MAX_CONTENT_BYTES = 16 * 1024 * 1024
_NAMESPACE = re.compile(NAMESPACE_PATTERN)
_RUN_ID = re.compile(RUN_ID_PATTERN)
_SHA256 = re.compile(r"^[0-9a-f]{64}$")


class FolderPayloadStore:
    """A PayloadStore in a folder of this machine. A file appears under its name only once it is complete."""

    def __init__(self, root: Path, *, max_bytes: int = MAX_CONTENT_BYTES) -> None:
        self._root = root
        self._max_bytes = max_bytes

    def put(self, namespace: str, run_id: RunId, content: bytes) -> PayloadReference:
        """See PayloadStore. Raises InvalidRequest where the namespace or run id could not name a folder."""
        if len(content) > self._max_bytes:
            raise PayloadTooLarge(
                f"a value of {len(content)} bytes; this payload store takes up to {self._max_bytes}",
                size=len(content),
                limit=self._max_bytes,
            )
        folder = self._folder(namespace, run_id)
        if folder is None:
            raise InvalidRequest("namespace or run_id is not of the documented form", namespace=namespace, run_id=run_id)
        reference = PayloadReference(run_id=run_id, sha256=sha256(content).hexdigest(), size=len(content))
        try:
            _write_whole(folder / reference.sha256, content)
        except OSError as error:
            raise StorageUnavailable(f"the payload folder cannot be written: {error.strerror}") from error
        return reference

    def get(self, namespace: str, run_id: str, sha256: str) -> bytes:
        """See PayloadStore. Raises InternalError where the stored bytes are not those that were put."""
        folder = self._folder(namespace, run_id)
        try:
            if folder is None or not _SHA256.fullmatch(sha256):
                raise FileNotFoundError
            content = (folder / sha256).read_bytes()
        except FileNotFoundError:
            raise NotFound(
                f"there is no payload {sha256} of run {run_id} in this namespace", run_id=run_id, sha256=sha256
            ) from None
        except OSError as error:
            raise StorageUnavailable(f"the payload folder cannot be read: {error.strerror}") from error
        return _checked(content, run_id, sha256)

    def _folder(self, namespace: str, run_id: str) -> Path | None:
        """Where the run's payloads lie; None where a name could lead elsewhere."""
        if namespace in {".", ".."} or not _NAMESPACE.fullmatch(namespace) or not _RUN_ID.fullmatch(run_id):
            return None
        return self._root / namespace / run_id


def _write_whole(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with NamedTemporaryFile(dir=path.parent, delete=False) as file:
        part = Path(file.name)
        try:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
            part.replace(path)
        except OSError:
            part.unlink(missing_ok=True)
            raise


def _checked(content: bytes, run_id: str, digest: str) -> bytes:
    if sha256(content).hexdigest() != digest:
        raise InternalError(f"the payload {digest} of run {run_id} was changed in its folder: its hash does not match")
    return content
