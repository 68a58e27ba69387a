"""A commit as the table sees it: the runs that it writes, before and after, and what is beside them."""

import json
import zlib
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from aiki_push.adapters.storage import formats
from aiki_push.adapters.storage.table import Put, Write
from aiki_push.domain.inbox import Message, Watcher
from aiki_push.domain.log_records import AnyRecord, CallEnded, LogSlot
from aiki_push.domain.run import Run
from aiki_push.domain.values import Json, RunId
from aiki_push.ports.store import SentEvent
from tests.simulation.stored import Stored


@dataclass(frozen=True, slots=True)
class RunChange:
    """What a commit makes of one run. `before` is None where it creates it."""

    before: Stored | None
    after: Stored
    untold: frozenset[RunId] = frozenset()
    """The watchers that it removes."""

    @property
    def records(self) -> tuple[AnyRecord, ...]:
        """Those that it adds to the log."""
        return self.after.records[len(self.before.records) if self.before else 0 :]

    @property
    def calls(self) -> list[CallEnded]:
        """The calls on other runs that it records."""
        return [record for record in self.records if isinstance(record, CallEnded)]

    @property
    def messages(self) -> tuple[Message, ...]:
        """Those that it adds to the inbox."""
        return self.after.messages[len(self.before.messages) if self.before else 0 :]

    @property
    def new_operations(self) -> list[str]:
        """The operations that the run knows from now on."""
        known = self.before.run.operations if self.before else ()
        return [operation_id for operation_id in self.after.run.operations if operation_id not in known]


@dataclass(slots=True)
class _Written:
    """The writes to the partition of one run."""

    run: Run | None = None
    slots: list[LogSlot] = field(default_factory=list)
    messages: list[Message] = field(default_factory=list)
    watchers: set[RunId] = field(default_factory=set)
    untold: set[RunId] = field(default_factory=set)
    is_told: bool = False


@dataclass(frozen=True, slots=True)
class Commit:
    """`sent` counts the references of events that it remembers, by run and event; `payloads` are values by run and hash."""

    changes: Mapping[RunId, RunChange]
    sent: Counter[tuple[RunId, str]]
    payloads: Mapping[tuple[RunId, str], Json]

    @classmethod
    def of(cls, writes: Sequence[Write], stored: Mapping[RunId, Stored]) -> "Commit":
        """What `writes` make of what is `stored`."""
        written: defaultdict[RunId, _Written] = defaultdict(_Written)
        sent = Counter[tuple[RunId, str]]()
        payloads: dict[tuple[RunId, str], Json] = {}
        for write in writes:
            kind, _, name = str(write.key.pk).partition("#")
            run_id, what = RunId(name.rpartition("#")[2]), write.key.sk.removeprefix("P#")
            if what != write.key.sk:
                payloads[run_id, what] = _payload(write)
            elif kind == "RUN":
                _take(written[run_id], write)
            elif kind == "EVENTREF" and isinstance(write, Put) and isinstance(event := formats.read(write.item), SentEvent):
                sent[run_id, event.event] += 1
                written[run_id].is_told = True
        return cls({run_id: _change(stored.get(run_id), one) for run_id, one in written.items()}, sent, payloads)

    @property
    def created(self) -> Iterator[tuple[RunId, Run]]:
        """The runs that it creates."""
        return ((run_id, change.after.run) for run_id, change in self.changes.items() if change.before is None)


def _payload(write: Write) -> Json:
    packed = write.item["d"] if isinstance(write, Put) else b""
    content: Json = json.loads(zlib.decompress(packed)) if isinstance(packed, bytes) else None
    return content


def _take(written: _Written, write: Write) -> None:
    if not isinstance(write, Put):
        written.untold.add(RunId(write.key.sk.removeprefix("W#")))
        return
    match formats.read(write.item):
        case Run() as run:
            written.run = run
        case LogSlot() as slot:
            written.slots.append(slot)
        case Message() as message:
            written.messages.append(message)
        case Watcher(run_id=watcher):
            written.watchers.add(watcher)


def _change(before: Stored | None, written: _Written) -> RunChange:
    run = written.run or (before.run if before else None)
    assert run is not None, "something is stored of a run that does not exist"
    old = before or Stored(run, ())
    after = Stored(
        run,
        tuple(sorted((*old.slots, *written.slots), key=lambda slot: slot.position)),
        tuple(sorted((*old.messages, *written.messages), key=lambda message: message.seq)),
        (old.watchers | written.watchers) - written.untold,
        run.inbox_seq if run.claim and not old.run.claim else old.claimed_seq,
    )
    return RunChange(before, after, frozenset(written.untold))
