"""One wait of the workflow in this segment."""

import asyncio
from dataclasses import dataclass

from aiki_push.domain.inbox import Message
from aiki_push.domain.log_records import Received, WaitEnded, WaitStarted
from aiki_push.domain.values import TimestampMs
from aiki_push.domain.waits import Wait
from aiki_push.sdk.calls import WaitCall
from aiki_push.sdk.replay.recorded import RecordedWait


@dataclass(slots=True, eq=False)
class LiveWait:
    """A wait that began at `called_at` by the workflow's clock. `recorded` is what the log knew of it before; `number` orders waits."""

    call: WaitCall
    ordinal: int
    number: int
    future: asyncio.Future[Message | None]
    called_at: TimestampMs
    deadline_at: TimestampMs | None
    recorded: RecordedWait | None

    @property
    def needs_record(self) -> bool:
        """Whether the log does not know yet until when this wait goes: it has a deadline that is new, or changed with the code."""
        return self.deadline_at is not None and (self.recorded is None or self.recorded.deadline_at != self.deadline_at)

    def started(self, at: TimestampMs) -> WaitStarted:
        """The record that the wait began."""
        return WaitStarted(at=at, kind=self.call.kind, key=self.call.key, ordinal=self.ordinal, deadline_at=self.deadline_at)

    def received(self, at: TimestampMs, message: Message) -> Received:
        """The record that the wait was given a message."""
        return Received(at=at, seq=message.seq, kind=self.call.kind, key=self.call.key, ordinal=self.ordinal)

    def timed_out(self, at: TimestampMs) -> WaitEnded:
        """The record that its time has passed."""
        return WaitEnded(at=at, kind=self.call.kind, key=self.call.key, ordinal=self.ordinal)

    def to_park_on(self) -> Wait:
        """What a parked run is woken by."""
        return Wait(kind=self.call.kind, key=self.call.key, ordinal=self.ordinal, deadline_at=self.deadline_at)
