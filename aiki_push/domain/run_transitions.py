"""Which state may follow which, and what entering one writes. Anything not in the table is an IllegalTransition."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from aiki_push.domain.changes import Change, PutSlot, SaveRun
from aiki_push.domain.errors import IllegalTransition
from aiki_push.domain.limits import Limits
from aiki_push.domain.log_records import AnyRecord, LogSlot, RecordedError, Tail, Transition
from aiki_push.domain.run import MAX_TAIL_BYTES, LastWrite, Offer, Run
from aiki_push.domain.run_states import PARKED, TERMINAL, Queued, RunState, Scheduled, Stalled, Status
from aiki_push.domain.values import StoredValue, TimestampMs

ANY: frozenset[str] = frozenset()
"""In the table: the target state with whatever reason it has."""

_STALLS_OF_AN_EXECUTOR = frozenset({"diverged", "cannot_restore", "unknown_record", "corrupt_log", "crash_loop"})
_PARKED_TO: Mapping[Status, frozenset[str]] = {
    "queued": frozenset(
        {
            "wakeup",
            "wakeup_early",
            "event",
            "event_wait_timeout",
            "child_workflow",
            "child_workflow_wait_timeout",
            "task_retry",
        }
    ),
    "paused": ANY,
    "cancelled": ANY,
}

LEGAL: Mapping[Status, Mapping[Status, frozenset[str]]] = {
    "scheduled": {"queued": frozenset({"new"}), "paused": ANY, "cancelled": ANY},
    "queued": {"running": ANY, "stalled": frozenset({"undelivered"}), "paused": ANY, "cancelled": ANY},
    "running": {
        "completed": ANY,
        "failed": ANY,
        "awaiting_retry": ANY,
        "sleeping": ANY,
        "awaiting_event": ANY,
        "awaiting_child_workflow": ANY,
        "awaiting_task_retry": ANY,
        "queued": frozenset({"recovery", "yield", "released"}),
        "stalled": _STALLS_OF_AN_EXECUTOR,
        "paused": ANY,
        "cancelled": ANY,
    },
    "sleeping": _PARKED_TO,
    "awaiting_event": _PARKED_TO,
    "awaiting_child_workflow": _PARKED_TO,
    "awaiting_task_retry": _PARKED_TO,
    "awaiting_retry": {"queued": frozenset({"retry"}), "paused": ANY, "cancelled": ANY},
    "paused": {
        "queued": frozenset({"resumption", "new", "retry"}),
        "scheduled": ANY,
        "awaiting_retry": ANY,
        **dict.fromkeys(sorted(PARKED), ANY),
        "cancelled": ANY,
    },
    "stalled": {"queued": frozenset({"redelivery"}), "cancelled": ANY},
    "completed": {},
    "failed": {},
    "cancelled": {},
}


def check_transition(run: Run, target: RunState) -> None:
    """Raises IllegalTransition where the table has no edge from the run's state to `target` with its reason."""
    origin = run.state.status
    reasons = LEGAL[origin].get(target.status)
    if reasons is None:
        raise IllegalTransition(
            f"run {run.id} is {origin}; it cannot become {target.status}",
            run_id=run.id,
            from_status=origin,
            to_status=target.status,
        )
    reason = target.reason if isinstance(target, Queued | Stalled | Scheduled) else None
    if reasons and reason not in reasons:
        raise IllegalTransition(
            f"run {run.id} is {origin}; it cannot become {target.status} for the reason {reason}",
            run_id=run.id,
            from_status=origin,
            to_status=target.status,
            reason=reason,
        )


@dataclass(frozen=True, slots=True)
class Told:
    """What a transition says beyond its state."""

    executor: str | None = None
    output: StoredValue | None = None
    error: RecordedError | None = None
    explanation: str | None = None


def enter(run: Run, target: RunState, at: TimestampMs, told: Told = Told()) -> tuple[Run, Transition]:
    """`run` in the state `target`, one revision on, and the record that says so. The caller puts the record into the log.

    Clears what belongs to the state it leaves: the claim and what its owner was directed to, the waits, what a pause has kept, the
    offers, the times. Whoever enters a state that is due some time sets `due_at`. Raises IllegalTransition.
    """
    check_transition(run, target)
    record = Transition(
        at=at,
        origin=run.state.status,
        state=target,
        revision=run.revision + 1,
        attempts=run.attempts,
        executor=told.executor,
        output=told.output,
        error=told.error,
        explanation=told.explanation,
    )
    left = {
        "claim": None,
        "last_write": None,
        "waits": (),
        "seen_seq": 0,
        "open_child_waits": 0,
        "paused_from": None,
        "directive": None,
        "duties": (),
        "offer": Offer(),
        "ready_at": None,
        "due_at": None,
        "advance_errors": 0,
    }
    return run.model_copy(update={**left, "state": target, "revision": record.revision}), record


def queue(run: Run, target: Queued, at: TimestampMs, told: Told = Told()) -> tuple[Run, Transition]:
    """`run` ready to be claimed since `at`, its first offer due at once."""
    queued, record = enter(run, target, at, told)
    return queued.model_copy(update={"ready_at": at, "due_at": at}), record


def ready_since(time: TimestampMs, now: TimestampMs, limits: Limits) -> TimestampMs:
    """The `ready_at` of a run queued at `now` that was due at `time`: that, so that runs go in the order of their times.

    Not so long ago, though, that the run would stall before anyone could take it.
    """
    return TimestampMs(max(min(time, now), now - limits.max_age_ms // 2))


def is_terminal(run: Run) -> bool:
    """Whether the run has ended."""
    return run.state.status in TERMINAL


def keep_in_tail(run: Run, records: Sequence[AnyRecord], at: TimestampMs) -> tuple[Change, ...]:
    """Write `run` with `records` at the end of its log: in the header's tail, or as a sealed slot where that would grow too large."""
    tail = Tail(position=run.tail.position, records=(*run.tail.records, *records))
    if len(tail.model_dump_json(exclude_none=True).encode()) <= MAX_TAIL_BYTES:
        return (SaveRun(run.model_copy(update={"tail": tail})),)
    return seal(run, tail.position, tail.records, at)


def seal(
    run: Run, position: int, records: Sequence[AnyRecord], at: TimestampMs, wrote: LastWrite | None = None
) -> tuple[Change, ...]:
    """Write `run` and `records` as the slot `position`, in one transaction: whoever wants that slot too fails, or we do."""
    slot = LogSlot(
        position=position,
        records=tuple(records),
        revision=run.revision,
        at=at,
        claim_id=wrote.claim_id if wrote else None,
        checkpoint_id=wrote.checkpoint_id if wrote else None,
    )
    moved_on = run.model_copy(update={"tail": Tail(position=position + 1, records=())})
    return SaveRun(moved_on), PutSlot(run.namespace, run.id, slot)


def next_position(run: Run, last: LogSlot | None) -> int:
    """The position after everything written: that of the tail while it is unsealed. `last` is the last slot of the log."""
    return run.tail.position if last is None or last.position < run.tail.position else last.position + 1


def take_away(run: Run, taken: Run, record: Transition, last: LogSlot | None, now: TimestampMs) -> tuple[Change, ...]:
    """Write `taken`, which `run` becomes against its owner's will, and take the next slot of the log in the same transaction.

    So the old owner's next append finds it taken, whatever it does. `last` is the last slot of the log.
    """
    position = next_position(run, last)
    unsealed = run.tail.records if position == run.tail.position else ()
    return seal(taken, position, (*unsealed, record), now)
