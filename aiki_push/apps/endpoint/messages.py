"""A push and its answer, whatever carries them."""

import json
from collections.abc import Callable, Coroutine, Iterable, Mapping
from dataclasses import dataclass, field
from math import inf
from typing import Any, TypeAlias

from aiki_push.domain.errors import InvalidRequest
from aiki_push.domain.values import Json

MAX_BODY_BYTES = 64 * 1024


@dataclass(frozen=True, slots=True)
class PushRequest:
    """Header names are lower-case; a header sent twice is joined by a comma.

    The path is left out: a push means the same at every path, so a stage or a base path in front of it does no harm.
    `body` is the raw bytes, of which a door need not read more than MAX_BODY_BYTES + 1. `left_ms` is for how long the invocation that
    carries the push can still execute.
    """

    method: str
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    body: bytes = field(default=b"", repr=False)
    left_ms: float = inf


@dataclass(frozen=True, slots=True)
class PushAnswer:
    """`body` is the JSON to answer with."""

    status: int
    body: Mapping[str, Json]
    headers: Mapping[str, str] = field(default_factory=dict)

    def text(self) -> str:
        """The body as compact JSON."""
        return json.dumps(dict(self.body), separators=(",", ":"))

    def all_headers(self) -> dict[str, str]:
        """The headers with those that every answer has; no cache may keep it."""
        return {"content-type": "application/json", "cache-control": "no-store", **self.headers}


Handle: TypeAlias = Callable[[PushRequest], Coroutine[Any, Any, PushAnswer]]
"""Answers one push."""


def joined_headers(headers: Iterable[tuple[str, str]]) -> dict[str, str]:
    """By lower-case name, as a PushRequest has them."""
    joined: dict[str, str] = {}
    for mixed_case, value in headers:
        name = mixed_case.lower()
        joined[name] = f"{joined[name]},{value}" if name in joined else value
    return joined


def invalid_answer(error: InvalidRequest) -> PushAnswer:
    """The 400 that tells the sender which fields are at fault."""
    return PushAnswer(400, {"code": error.code, "detail": error.detail, **error.fields})
