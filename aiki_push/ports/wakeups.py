"""Hints: a run will need attention at a time. They may be lost, late, doubled or wrong; the table decides."""

from typing import Literal, Protocol

from aiki_push.domain.values import RunId, Stored, TimestampMs

MAX_HINT_DELAY_MS = 900_000
"""Runs due later than this get no hint; the sweep sends one when their time is near. SQS delays end at 15 minutes."""


class Hint(Stored):
    """Says that the run is due at `due_at`."""

    v: Literal[1] = 1
    namespace: str
    run_id: RunId
    due_at: TimestampMs


class Wakeups(Protocol):
    """Delivers hints at their time. Safe to call from any thread."""

    def send(self, *hints: Hint) -> None:
        """Have each of `hints` handled at its `due_at` or later. Never raises for a failed delivery: it is logged and forgotten."""
        ...
