"""From an operation to what an HTTP request carries. `decoding` is its opposite."""

from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlencode

from pydantic_core import to_json

from aiki_push.adapters.transport.routes import takes_body
from aiki_push.ports.api.operation import Operation


@dataclass(frozen=True, slots=True)
class Encoded:
    """`target` is path and query, percent-encoded; `body` is JSON, or None where the method takes none."""

    target: str
    body: bytes | None


def encode(operation: Operation[Any]) -> Encoded:
    """`operation` as a request. Fields that were never set are left out, so that no input does not become the input null."""
    in_path = operation.path_fields()
    path = operation.path.format(**{name: _segment(str(getattr(operation, name))) for name in in_path})
    rest = operation.model_dump(include=operation.model_fields_set.difference(in_path))
    if takes_body(type(operation)):
        # A NaN that slipped in travels as NaN, for the server to refuse; pydantic's own encoding would make it null.
        return Encoded(path, to_json(rest, inf_nan_mode="constants"))
    query = urlencode({name: value for name, value in rest.items() if value is not None})
    return Encoded(f"{path}?{query}" if query else path, None)


def _segment(value: str) -> str:
    # `.` and `..` would be resolved like those of a relative link.
    return value.replace(".", "%2E") if value in (".", "..") else quote(value, safe="")
