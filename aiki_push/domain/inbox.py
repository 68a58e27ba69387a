"""What the world told a run, in the order in which the database took it in."""

from typing import Literal

from aiki_push.domain.values import Stored, StoredValue, TimestampMs


class Message(Stored):
    """One message for a run. `seq` counts from 1 and is assigned in the transaction that stores it, never by a clock.

    `kind` and `key` say which waits want it: an event's name, a child's run id, a sleep's name.
    """

    v: Literal[1] = 1
    seq: int
    at: TimestampMs
    kind: Literal["event", "child", "wakeup"]
    key: str
    data: StoredValue | None = None
