"""What a parked run waits for."""

from collections.abc import Sequence
from typing import Literal

from aiki_push.domain.run_states import AwaitingChildWorkflow, AwaitingEvent, AwaitingTaskRetry, Sleeping
from aiki_push.domain.values import Stored, TimestampMs

WaitKind = Literal["timer", "sleep", "event", "child", "task_retry"]

ParkedState = Sleeping | AwaitingEvent | AwaitingChildWorkflow | AwaitingTaskRetry


class Wait(Stored):
    """One thing a branch waits for. `key` and `ordinal` bind its end to this wait and no other; no deadline means for ever."""

    kind: WaitKind
    key: str
    ordinal: int
    deadline_at: TimestampMs | None = None


MAX_WAITS_BYTES = 512
"""What the waits of a parked run may take in its header (JSON)."""

ANY_KEY = "*"
"""The key of a wait that stands for all of its kind."""


def collapsed(waits: Sequence[Wait]) -> tuple[Wait, ...]:
    """`waits` as a header keeps them: where they would take too much of it, one for each kind, with its earliest deadline."""
    if sum(len(wait.model_dump_json(exclude_none=True)) for wait in waits) <= MAX_WAITS_BYTES:
        return tuple(waits)
    return put_together(waits)


def put_together(waits: Sequence[Wait]) -> tuple[Wait, ...]:
    """One wait for each kind, for any key, with the earliest deadline of its kind."""
    by_kind: dict[WaitKind, list[Wait]] = {}
    for wait in waits:
        by_kind.setdefault(wait.kind, []).append(wait)
    return tuple(
        Wait(kind=kind, key=ANY_KEY, ordinal=0, deadline_at=earliest_deadline(of_kind)) for kind, of_kind in by_kind.items()
    )


def earliest_deadline(waits: Sequence[Wait]) -> TimestampMs | None:
    """When the first of `waits` is due, None where none ever is."""
    return min((wait.deadline_at for wait in waits if wait.deadline_at is not None), default=None)


def parked_state(waits: Sequence[Wait]) -> ParkedState:
    """The state of a run parked on `waits`: the kind with the earliest deadline; without any deadline, event before child.

    `waits` is not empty. Timers count as sleeping.
    """
    deadline = earliest_deadline(waits)
    if deadline is None:
        return AwaitingEvent() if any(wait.kind == "event" for wait in waits) else AwaitingChildWorkflow()
    kind = next(wait.kind for wait in waits if wait.deadline_at == deadline)
    if kind == "event":
        return AwaitingEvent(timeout_at=deadline)
    if kind == "child":
        return AwaitingChildWorkflow(timeout_at=deadline)
    if kind == "task_retry":
        return AwaitingTaskRetry(next_attempt_at=deadline)
    return Sleeping(wakeup_at=deadline)
