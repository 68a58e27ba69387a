"""The small words every other module is written in: times, ids, names, JSON values and how values are stored."""

from typing import TYPE_CHECKING, Annotated, Any, Literal, NewType, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

if TYPE_CHECKING:
    Json: TypeAlias = "str | int | float | bool | list[Json] | dict[str, Json] | None"
else:
    # Values come from a JSON parser or were checked by canonical_json; a model need not walk them once more.
    Json = Any
"""A plain JSON value as Python parses it. Never mutated once it is part of a record."""

TimestampMs = NewType("TimestampMs", int)
"""Milliseconds since 1970-01-01T00:00:00Z."""

DurationMs = NewType("DurationMs", int)
"""A length of time in whole milliseconds."""

RunId = NewType("RunId", str)
"""A ULID: 26 characters of Crockford's base 32, sortable by creation."""

NAME_PATTERN = r"^[A-Za-z0-9._:-]{1,128}$"
"""Workflow, version, task, event, pool and endpoint names. No `#`, so a name can never forge a separator of a storage key."""

NAMESPACE_PATTERN = r"^[A-Za-z0-9._-]{1,64}$"
RUN_ID_PATTERN = r"^[0-7][0-9A-HJKMNP-TV-Z]{25}$"
IDENTIFIER_PATTERN = r"^[A-Za-z0-9_-]{1,64}$"

Name = Annotated[str, StringConstraints(pattern=NAME_PATTERN)]
Identifier = Annotated[str, StringConstraints(pattern=IDENTIFIER_PATTERN)]
"""An id made by whoever sends a request (claim, checkpoint, operation): 1 to 64 letters, digits, `_` or `-`."""

Priority = Annotated[int, Field(ge=0, le=9, strict=True)]
"""0 goes first, 9 last; breaks ties only among runs due in the same millisecond."""

DEFAULT_PRIORITY = 5

MAX_INLINE_BYTES = 32 * 1024
"""Values up to this size (compact JSON, UTF-8) are stored in the log itself; larger ones in the payload store."""

MAX_VALUE_BYTES = 256 * 1024
"""The largest value (compact JSON, UTF-8) that a request may carry."""


class Frozen(BaseModel):
    """Base of everything that crosses a boundary: immutable, and strict about fields it does not know."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Stored(BaseModel):
    """Base of what is read back from the table: immutable; fields written by a newer release are ignored."""

    model_config = ConfigDict(frozen=True, extra="ignore")


class Inline(Stored):
    """A value kept where it is used."""

    kind: Literal["inline"] = "inline"
    value: Json = None


class PayloadReference(Stored):
    """A value kept in the payload store of the run `run_id`: SHA-256 (hex) and size in bytes of its compact JSON."""

    kind: Literal["payload"] = "payload"
    run_id: RunId
    sha256: str
    size: int


StoredValue = Annotated[Inline | PayloadReference, Field(discriminator="kind")]
