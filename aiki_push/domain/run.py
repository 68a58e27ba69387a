"""The header of a run: where it is. What it did is the log; what the world told it is the inbox."""

from typing import Literal

from aiki_push.domain.log_records import Tail
from aiki_push.domain.run_states import AnyState
from aiki_push.domain.values import DEFAULT_PRIORITY, Name, Priority, RunId, Stored, TimestampMs
from aiki_push.domain.waits import Wait

MAX_TAIL_BYTES = 2 * 1024
"""A transition that would make the tail larger (JSON, UTF-8) seals it into a slot of its own instead."""

MAX_OPERATIONS = 8
"""How many operation ids a header remembers, so that a repeated operation is recognised."""


class RunOptions(Stored):
    """What a run keeps for life: which executors may take it, and who goes first among runs due in the same millisecond."""

    pool: Name | None = None
    priority: Priority = DEFAULT_PRIORITY


class Claim(Stored):
    """Who executes the run, and when it last said so."""

    claim_id: str
    executor: str
    claimed_at: TimestampMs
    refreshed_at: TimestampMs


class LastWrite(Stored):
    """The checkpoint that made the latest transition, so that its repetition is recognised."""

    checkpoint_id: str
    claim_id: str


class Offer(Stored):
    """How often the run was offered to endpoints since it was queued, and what went wrong last."""

    attempts: int = 0
    last_error: str | None = None


class Run(Stored):
    """A run's header. `revision` grows by one with every transition; `etag` changes with every write and is the condition of the next."""

    v: Literal[1] = 1
    etag: str = ""
    namespace: str
    id: RunId
    workflow: Name
    version: Name
    input_hash: str
    options: RunOptions
    created_at: TimestampMs
    revision: int
    state: AnyState
    attempts: int = 1
    tail: Tail
    claim: Claim | None = None
    last_write: LastWrite | None = None
    inbox_seq: int = 0
    waits: tuple[Wait, ...] = ()
    recoveries: int = 0
    advance_errors: int = 0
    offer: Offer = Offer()
    operations: tuple[str, ...] = ()
    ready_at: TimestampMs | None = None
    due_at: TimestampMs | None = None
