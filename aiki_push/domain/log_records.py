"""What a run did, in order. The log of records is the run's history and all that a replay needs."""

from typing import Annotated, Literal, TypeAlias

from pydantic import ConfigDict, Field

from aiki_push.domain.run_states import AnyState, Status
from aiki_push.domain.values import RunId, Stored, StoredValue, TimestampMs
from aiki_push.domain.waits import WaitKind

MAX_ERROR_BYTES = 16 * 1024
"""A recorded error, its stack and causes included, is cut to this size (UTF-8 JSON)."""


class RecordedError(Stored):
    """An exception as data: class name, message, formatted stack, and what caused it."""

    name: str
    message: str
    stack: str | None = None
    cause: "RecordedError | None" = None


class InputRecord(Stored):
    """The first record of every run. `value` is None where the workflow takes no input."""

    type: Literal["input"] = "input"
    at: TimestampMs
    value: StoredValue | None = None
    hash: str


class Transition(Stored):
    """The run entered `state`. `output`, `error` and `explanation` come with the states that have one."""

    type: Literal["transition"] = "transition"
    at: TimestampMs
    origin: Status | None = None
    state: AnyState
    revision: int
    attempts: int
    executor: str | None = None
    output: StoredValue | None = None
    error: RecordedError | None = None
    explanation: str | None = None


class TaskStarted(Stored):
    """A task's handler is about to run. A re-execution after an interruption has its own record, with the same `attempt`."""

    type: Literal["task_started"] = "task_started"
    at: TimestampMs
    task_id: str
    name: str
    input_hash: str
    ordinal: int
    attempt: int
    input: StoredValue | None = None


class TaskCompleted(Stored):
    """The handler returned `output`."""

    type: Literal["task_completed"] = "task_completed"
    at: TimestampMs
    task_id: str
    attempt: int
    output: StoredValue


class TaskFailed(Stored):
    """The handler raised and is not tried again. `is_final`: a retry of the whole workflow would not help either, or do harm."""

    type: Literal["task_failed"] = "task_failed"
    at: TimestampMs
    task_id: str
    attempt: int
    error: RecordedError
    is_final: bool = False


class TaskBackingOff(Stored):
    """The handler raised and is tried again at `next_attempt_at`."""

    type: Literal["task_backing_off"] = "task_backing_off"
    at: TimestampMs
    task_id: str
    attempt: int
    error: RecordedError
    next_attempt_at: TimestampMs


class TaskCancelled(Stored):
    """The workflow cancelled the call; a later outcome does not count."""

    type: Literal["task_cancelled"] = "task_cancelled"
    at: TimestampMs
    task_id: str


class WaitStarted(Stored):
    """A branch began to wait, until `deadline_at` at the latest."""

    type: Literal["wait_started"] = "wait_started"
    at: TimestampMs
    kind: WaitKind
    key: str
    ordinal: int
    deadline_at: TimestampMs | None = None


class WaitEnded(Stored):
    """A wait's deadline passed while an executor held the run."""

    type: Literal["wait_ended"] = "wait_ended"
    at: TimestampMs
    kind: WaitKind
    key: str
    ordinal: int


class Received(Stored):
    """The inbox's message `seq` was given to a wait: an event, a child's end, or an early wake of a sleep."""

    type: Literal["received"] = "received"
    at: TimestampMs
    seq: int
    kind: Literal["event", "child", "sleep"]
    key: str
    ordinal: int


CallKind: TypeAlias = Literal["child", "send_event", "cancel", "pause", "resume", "wakeup"]
"""What a workflow can ask of other runs: to exist, to be told something, to be controlled."""

CallResult: TypeAlias = Literal["created", "existing", "delivered", "not_delivered", "done", "requested"]


class CallError(Stored):
    """Why a call on another run was refused: the API's error code and its sentence."""

    code: str
    detail: str


class CallEnded(Stored):
    """A call on another run was carried out, or refused (`error`), in the transaction that wrote this.

    `run_id` is the run that was created, found or spoken to; `name` what was asked for: workflow and version, or an event.
    """

    type: Literal["call_ended"] = "call_ended"
    at: TimestampMs
    kind: CallKind
    key: str
    ordinal: int
    run_id: RunId
    name: str | None = None
    result: CallResult | None = None
    error: CallError | None = None


class UnknownRecord(Stored):
    """A record that this release does not know. Whoever must understand it stalls the run; nobody fails it.

    Its other fields are kept, so that writing a header back loses nothing that a newer release recorded in its tail.
    """

    model_config = ConfigDict(frozen=True, extra="allow")

    type: str
    at: TimestampMs


KnownRecord: TypeAlias = (
    InputRecord
    | Transition
    | TaskStarted
    | TaskCompleted
    | TaskFailed
    | TaskBackingOff
    | TaskCancelled
    | WaitStarted
    | WaitEnded
    | Received
    | CallEnded
)
Record = Annotated[KnownRecord, Field(discriminator="type")]
StoredRecord = Annotated[Record | UnknownRecord, Field(union_mode="left_to_right")]
AnyRecord: TypeAlias = KnownRecord | UnknownRecord

OUTCOMES = (TaskCompleted, TaskFailed, TaskBackingOff, TaskCancelled, WaitStarted, WaitEnded, Received)
"""What an executor may still record while it hands a run back: nothing that starts an effect."""


class LogSlot(Stored):
    """One slot of the log: what one checkpoint or transition wrote, and under which claim. Never changed once it exists."""

    v: Literal[1] = 1
    position: int
    records: tuple[StoredRecord, ...]
    revision: int
    at: TimestampMs
    claim_id: str | None = None
    checkpoint_id: str | None = None


class Tail(Stored):
    """The unsealed end of the log, kept in the header: it is slot `position` until that slot exists as an item."""

    position: int
    records: tuple[StoredRecord, ...]
