"""What the world told a run, in the order in which the database took it in; and who is to be told of a run's end."""

from typing import Annotated, Literal, TypeAlias

from pydantic import Field

from aiki_push.domain.log_records import RecordedError
from aiki_push.domain.run_states import Cancelled, Completed, Failed
from aiki_push.domain.values import RunId, Stored, StoredValue, TimestampMs

MessageKind: TypeAlias = Literal["event", "child", "wakeup"]


class RunEnding(Stored):
    """How a run ended, as its watchers are told. `output`, `error` and `explanation` come with the states that have one."""

    state: Annotated[Completed | Failed | Cancelled, Field(discriminator="status")]
    output: StoredValue | None = None
    error: RecordedError | None = None
    explanation: str | None = None


class Message(Stored):
    """One message for a run. `seq` counts from 1 and is assigned in the transaction that stores it, never by a clock.

    `kind` and `key` say which waits want it: an event's name, a child's run id, a sleep's name (`*`: every sleep).
    `data` comes with events that carry any, `ending` with the end of a child.
    """

    v: Literal[1] = 1
    seq: int
    at: TimestampMs
    kind: MessageKind
    key: str
    data: StoredValue | None = None
    ending: RunEnding | None = None


class Watcher(Stored):
    """The run `run_id` is to be told when the run that this belongs to has ended. `etag` as that of a Run."""

    v: Literal[1] = 1
    etag: str = ""
    run_id: RunId
