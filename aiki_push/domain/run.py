"""The header of a run: where it is. What it did is the log; what the world told it is the inbox."""

from typing import Annotated, Any, Literal, TypeAlias

from pydantic import BeforeValidator, StringConstraints, TypeAdapter

from aiki_push.domain.log_records import Tail
from aiki_push.domain.retry import RetryStrategy
from aiki_push.domain.run_states import AnyState
from aiki_push.domain.values import DEFAULT_PRIORITY, Name, Priority, RunId, Stored, TimestampMs
from aiki_push.domain.waits import Wait

MAX_TAIL_BYTES = 2 * 1024
"""A transition that would make the tail larger (JSON, UTF-8) seals it into a slot of its own instead."""

MAX_OPERATIONS = 8
"""How many operation ids a header remembers, so that a repeated operation is recognised."""


REFERENCE_PATTERN = r"^[^\u0000-\u001f\u007f-\u009f\u2028\u2029]+$"
"""Any Unicode text without control characters and line separators."""

MAX_REFERENCE_LENGTH = 256

ReferenceId = Annotated[str, StringConstraints(min_length=1, max_length=MAX_REFERENCE_LENGTH, pattern=REFERENCE_PATTERN)]
"""What a client calls a run, one of a kind within a workflow version. Compared character by character, as it was sent."""

_RETRY: TypeAdapter[RetryStrategy] = TypeAdapter(RetryStrategy)


def _without_unknown(retry: Any) -> Any:
    """A strategy as a newer release may have written it, which requests must not look like."""
    return _RETRY.validate_python(retry, extra="ignore") if isinstance(retry, dict) else retry


class RunOptions(Stored):
    """What a run keeps for life.

    Which executors may take it, who goes first among runs due in the same millisecond, and what follows a failed attempt
    (None: nothing).
    """

    pool: Name | None = None
    priority: Priority = DEFAULT_PRIORITY
    retry: Annotated[RetryStrategy | None, BeforeValidator(_without_unknown)] = None


class Claim(Stored):
    """Who executes the run, and when it last said so. `request_id` is that of the request by which it was pulled, if it was."""

    claim_id: str
    executor: str
    claimed_at: TimestampMs
    refreshed_at: TimestampMs
    request_id: str | None = None


class LastWrite(Stored):
    """The checkpoint that made the latest transition, so that its repetition is recognised."""

    checkpoint_id: str
    claim_id: str


class Offer(Stored):
    """How often the run was offered to endpoints since it was queued, and what went wrong last."""

    attempts: int = 0
    last_error: str | None = None


Duty: TypeAlias = Literal["tell_watchers", "cancel_children"]
"""What is still to be done for a run that has ended."""


class Directive(Stored):
    """What the executor of a run is to do with it at once, because the run could not be taken from it."""

    action: Literal["pause", "cancel"]
    operation_id: str
    explanation: str | None = None


class Run(Stored):
    """A run's header. `revision` grows by one with every transition; `etag` changes with every write and is the condition of the next.

    `ready_at` is when a queued run became due, whatever became of its offers; while a pulled claim holds the run, when it had.
    `inbox_seq` numbers the last message; `waits`, `seen_seq` and `open_child_waits` are what a parked run waits for, the last
    message it had seen, and how many of its waits are for children. While it is paused they are kept, with `paused_from`.
    `watched`: runs are to be told of its end. `duties` are left of a run that has ended.
    """

    v: Literal[1] = 1
    etag: str = ""
    namespace: str
    id: RunId
    workflow: Name
    version: Name
    input_hash: str
    options: RunOptions
    reference: str | None = None
    parent: RunId | None = None
    created_at: TimestampMs
    revision: int
    state: AnyState
    attempts: int = 1
    tail: Tail
    claim: Claim | None = None
    last_write: LastWrite | None = None
    inbox_seq: int = 0
    waits: tuple[Wait, ...] = ()
    seen_seq: int = 0
    open_child_waits: int = 0
    watched: bool = False
    paused_from: AnyState | None = None
    directive: Directive | None = None
    duties: tuple[Duty, ...] = ()
    recoveries: int = 0
    advance_errors: int = 0
    offer: Offer = Offer()
    operations: tuple[str, ...] = ()
    ready_at: TimestampMs | None = None
    due_at: TimestampMs | None = None


class RunReference(Stored):
    """Which run a client's reference names. The run may be gone: then the reference is free. `etag` as that of a Run."""

    v: Literal[1] = 1
    etag: str = ""
    namespace: str
    workflow: Name
    version: Name
    reference: str
    run_id: RunId
