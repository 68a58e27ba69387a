"""A run as it is stored: what every rule is about."""

from collections.abc import Iterable
from dataclasses import dataclass

from aiki_push.domain.inbox import Message
from aiki_push.domain.log_records import AnyRecord, LogSlot, Transition
from aiki_push.domain.run import Run
from aiki_push.domain.run_states import TERMINAL
from aiki_push.domain.values import RunId


@dataclass(frozen=True, slots=True)
class Stored:
    """The header; slots and messages in the order of their numbers; the runs that are still to be told of the end.

    `claimed_seq` is the last message that was there when the present owner claimed the run.
    """

    run: Run
    slots: tuple[LogSlot, ...]
    messages: tuple[Message, ...] = ()
    watchers: frozenset[RunId] = frozenset()
    claimed_seq: int = 0

    @property
    def is_sealed(self) -> bool:
        """Whether the tail is a slot by now."""
        return len(self.slots) > self.run.tail.position

    @property
    def has_ended(self) -> bool:
        """Whether the run is in a state that it never leaves."""
        return self.run.state.status in TERMINAL

    @property
    def records(self) -> tuple[AnyRecord, ...]:
        """The whole log."""
        tail = () if self.is_sealed else self.run.tail.records
        return (*(record for slot in self.slots for record in slot.records), *tail)

    @property
    def transitions(self) -> list[Transition]:
        """The transitions in the log."""
        return transitions_in(self.records)


def transitions_in(records: Iterable[AnyRecord]) -> list[Transition]:
    """Those of `records` that are transitions."""
    return [record for record in records if isinstance(record, Transition)]
