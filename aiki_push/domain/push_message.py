"""The body of a push: which run is ready, for whom. It carries no input and no credentials; the claim fetches those."""

from datetime import UTC, datetime, timedelta
from typing import Annotated, Literal

from pydantic import AfterValidator, ConfigDict, Field, StringConstraints, ValidationError
from pydantic_core import PydanticCustomError

from aiki_push.domain.errors import InvalidRequest
from aiki_push.domain.values import NAMESPACE_PATTERN, RUN_ID_PATTERN, Frozen, Json, Name, RunId, TimestampMs

PUSH_VERSION: Literal[1] = 1
RUN_READY: Literal["run.ready"] = "run.ready"

MAX_REVISION = 2**53 - 1
"""The largest whole number that every JSON reader keeps exact (RFC 8259, section 6)."""


def _readable_version(version: int) -> int:
    if version > PUSH_VERSION:
        raise PydanticCustomError("push_version", "Newer than version 1, which this release reads; upgrade the receiving side")
    if version != PUSH_VERSION:
        raise PydanticCustomError("push_version", "Input should be 1")
    return version


class PushData(Frozen):
    """The run on offer. `revision` is the one to claim; `audience` names the endpoint it is meant for, if that has a name."""

    model_config = ConfigDict(extra="ignore")

    run_id: Annotated[RunId, StringConstraints(pattern=RUN_ID_PATTERN)]
    workflow: Name
    version: Name
    pool: Name | None
    revision: int = Field(ge=0, le=MAX_REVISION)
    namespace: str = Field(pattern=NAMESPACE_PATTERN)
    audience: str | None


class PushMessage(Frozen):
    """A push as it travels. `timestamp` is when it was written, RFC 3339 in UTC with milliseconds: `2026-01-31T09:30:00.125Z`.

    Fields that this release does not know are ignored, so a newer server can add some without raising `v`.
    """

    model_config = ConfigDict(extra="ignore")

    v: Annotated[int, AfterValidator(_readable_version)]
    type: Literal["run.ready"]
    timestamp: str = Field(pattern=r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{3}Z$")
    data: PushData


def encode_push(data: PushData, at: TimestampMs) -> bytes:
    """Compact UTF-8 JSON of the push written at `at`. Sign and send these very bytes."""
    timestamp = (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=at)).isoformat(timespec="milliseconds")
    message = PushMessage(v=PUSH_VERSION, type=RUN_READY, timestamp=timestamp.replace("+00:00", "Z"), data=data)
    return message.model_dump_json().encode()


def parse_push(body: bytes) -> PushMessage:
    """The message in `body`, whose signature has been verified.

    Raises InvalidRequest: no JSON, or not of this shape; `fields["errors"]` has `{"field", "message"}` for each fault, the
    field written as a path (`data.revision`; `body` for all of it). A `v` or `type` that this release does not read is
    reported alone, since the rest then follows other rules. No message repeats a value of the body.
    """
    try:
        return PushMessage.model_validate_json(body, strict=True)
    except ValidationError as error:
        faults = [(".".join(map(str, one["loc"])) or "body", one["msg"]) for one in error.errors(include_input=False)]
    kind_faults = [(field, message) for field, message in faults if field in ("v", "type")]
    errors: list[Json] = [{"field": field, "message": message} for field, message in kind_faults or faults]
    field, message = (kind_faults or faults)[0]
    raise InvalidRequest(f"The body is not a push that this release reads. {field}: {message}", errors=errors)


def webhook_id(run_id: RunId, revision: int, offer_number: int) -> str:
    """The `webhook-id` of the offer `offer_number` of this revision: the same for every attempt to deliver that offer."""
    return f"msg_{run_id}_{revision}_{offer_number}"
