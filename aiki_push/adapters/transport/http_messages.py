"""HTTP without a server: what every door reads a request into, and what it sends back."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class HttpRequest:
    """`path` and `query` as they were sent: percent-encoded, the query without its `?`. Header names are lower-case."""

    method: str
    path: str
    query: str = field(default="", repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    body: bytes = field(default=b"", repr=False)


@dataclass(frozen=True, slots=True)
class HttpResponse:
    """Header names are lower-case; the body is UTF-8 JSON."""

    status: int
    headers: Mapping[str, str]
    body: bytes = field(repr=False)


def json_response(status: int, body: bytes, media_type: str = "application/json", **headers: str) -> HttpResponse:
    """A response that no cache may keep. Keyword arguments are further headers, `retry_after` for `retry-after`."""
    more = {name.replace("_", "-"): value for name, value in headers.items()}
    return HttpResponse(status, {"content-type": media_type, "cache-control": "no-store", **more}, body)
