"""Honest executors of one run, as far as the protocol sees them: what each knows, and what it may send."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from aiki_push.domain.inbox import Message
from aiki_push.domain.log_records import AnyRecord, CallEnded, KnownRecord, Received, TaskCancelled, TaskStarted
from aiki_push.domain.values import Inline, RunId, TimestampMs
from aiki_push.domain.waits import Wait
from aiki_push.ports.api.calls import StartChild
from aiki_push.ports.api.checkpoints import (
    AppendCheckpoint,
    Appended,
    Complete,
    HandBack,
    InboxMoved,
    Overtaken,
    Park,
    SegmentEnd,
    Yield,
)
from aiki_push.ports.api.claims import Claimed
from aiki_push.testing import FAKE_NOW
from tests.simulation.stored_states import CHILD

EVENT = "e"
AT = TimestampMs(FAKE_NOW)
DEADLINE_AT = TimestampMs(FAKE_NOW + 3_600_000)

TIMER = Wait(kind="timer", key="timer|0", ordinal=1, deadline_at=DEADLINE_AT)
PARK = Park(waits=(TIMER,), seen_seq=0)
FINISH = Complete(output=Inline(value="done"))


@dataclass(frozen=True, slots=True)
class Owner:
    """An executor: what it knows of its latest claim, and the request that it waits for; "" once it has ended or lost its segment.

    `seen` messages of the inbox, of which it has `received` some, by the log, and has those numbered `fresh` still to receive.
    """

    name: str
    claims: int = 0
    token: str = ""
    position: int = 0
    appends: int = 0
    seen: int = 0
    received: int = 0
    fresh: tuple[int, ...] = ()
    has_child: bool = False
    child_ended: bool = False
    waits_for: str = ""

    @property
    def claim_id(self) -> str:
        """That of its latest claim."""
        return f"{self.name}{self.claims}"

    # ---- what it hears

    def claimed(self, answer: Claimed) -> "Owner":
        """It owns the run, and has read its log."""
        records = [*(record for slot in answer.slots for record in slot.records), *answer.tail.records]
        received = {record.seq for record in records if isinstance(record, Received)}
        own = replace(self, token=answer.token, position=answer.position, received=len(received), waits_for="")
        heard = replace(own, has_child=any(map(_starts_child, records)))._heard(answer.messages)
        return replace(heard, fresh=tuple(seq for seq in heard.fresh if seq not in received))

    def appended(self, answer: Appended | Overtaken) -> "Owner":
        """Its append is in the log, with all that it had received."""
        return replace(
            self,
            token=answer.token,
            position=answer.position,
            appends=self.appends + 1,
            received=self.received + len(self.fresh),
            fresh=(),
            has_child=self.has_child or any(map(_starts_child, answer.ended)),
            waits_for="",
        )

    def refused(self, answer: InboxMoved) -> "Owner":
        """Its park was refused: there are messages."""
        return replace(self, waits_for="")._heard(answer.messages)

    def _heard(self, messages: tuple[Message, ...]) -> "Owner":
        return replace(
            self,
            seen=max((self.seen, *(message.seq for message in messages))),
            fresh=(*self.fresh, *(message.seq for message in messages if message.kind == "event")),
            child_ended=self.child_ended or any(message.kind == "child" for message in messages),
        )

    # ---- what it sends

    def append(self, run_id: RunId) -> AppendCheckpoint:
        """It starts a task."""
        return self._checkpoint(run_id, "append")

    def start_child(self, run_id: RunId) -> AppendCheckpoint:
        """It starts a child."""
        child = StartChild(key="child", ordinal=0, run_id=CHILD, workflow="c", version="1")
        return self._checkpoint(run_id, "append").model_copy(update={"calls": (child,)})

    def ends(self, run_id: RunId) -> Iterator[tuple[str, AppendCheckpoint]]:
        """How it may end its segment."""
        yield "park", self._checkpoint(run_id, "park", self._park())
        yield "finish", self._checkpoint(run_id, "finish", FINISH)
        yield "yield", self._checkpoint(run_id, "yield", Yield())

    def give_up(self, run_id: RunId, end: SegmentEnd | HandBack) -> AppendCheckpoint:
        """It ends its segment after an append that got no answer."""
        return self._checkpoint(run_id, "give-up", end)

    def _park(self) -> Park:
        waits = [TIMER, Wait(kind="event", key=EVENT, ordinal=self.received + len(self.fresh))]
        if self.has_child and not self.child_ended:
            waits.append(Wait(kind="child", key=CHILD, ordinal=0))
        return Park(waits=tuple(waits), seen_seq=self.seen)

    def _checkpoint(self, run_id: RunId, kind: str, end: SegmentEnd | HandBack | None = None) -> AppendCheckpoint:
        received = (
            Received(at=AT, seq=seq, kind="event", key=EVENT, ordinal=self.received + place)
            for place, seq in enumerate(self.fresh)
        )
        return AppendCheckpoint(
            run_id=run_id,
            token=self.token,
            checkpoint_id=f"{self.claim_id}-{self.position}-{kind}",
            position=self.position,
            records=(*received, _record(f"{kind} of {self.claim_id} at {self.position}", is_start=end is None)),
            end=end,
        )


def _starts_child(record: AnyRecord) -> bool:
    return isinstance(record, CallEnded) and record.kind == "child"


def _record(task_id: str, *, is_start: bool) -> KnownRecord:
    if is_start:
        return TaskStarted(at=AT, task_id=task_id, name="t", input_hash="h", ordinal=0, attempt=1)
    return TaskCancelled(at=AT, task_id=task_id)
