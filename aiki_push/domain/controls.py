"""Control from outside: pause, resume, cancel, wake up, requeue; and what the owner of a run does that was told to pause or cancel it.

Each operation has an id that the header remembers: one that was carried out, or accepted, changes nothing any more.
"""

from aiki_push.domain.changes import Change, SaveRun
from aiki_push.domain.errors import IllegalTransition
from aiki_push.domain.follow_ups import with_duties
from aiki_push.domain.limits import Limits
from aiki_push.domain.log_records import LogSlot, Transition
from aiki_push.domain.messages import News, tell, wants_any
from aiki_push.domain.run import MAX_OPERATIONS, Directive, Run
from aiki_push.domain.run_states import (
    PARKED,
    AwaitingRetry,
    Cancelled,
    Paused,
    Queued,
    QueuedReason,
    Running,
    RunState,
    Scheduled,
    Status,
)
from aiki_push.domain.run_transitions import LEGAL, Told, enter, keep_in_tail, next_position, queue, ready_since, take_away
from aiki_push.domain.values import TimestampMs
from aiki_push.domain.waits import ANY_KEY, earliest_deadline

_WOKEN_LATER: frozenset[Status] = frozenset({"queued", "running", "paused"})
"""A run in these states may be in a sleep that its header does not tell of; it takes the message when it comes to it."""


def decide_pause(run: Run, operation_id: str, last: LogSlot | None, now: TimestampMs) -> tuple[Change, ...]:
    """→ paused, keeping in the header what resuming needs. `last` is the last slot of the log: a running run loses the next one.

    Raises IllegalTransition for a run that has ended, is stalled, paused or being cancelled.
    """
    return _decide(run, Directive(action="pause", operation_id=operation_id), last, now)


def decide_cancel(
    run: Run, operation_id: str, explanation: str | None, last: LogSlot | None, now: TimestampMs
) -> tuple[Change, ...]:
    """→ cancelled, with what is to be done about that. `last` as for `decide_pause`. Raises IllegalTransition for a run that has ended."""
    return _decide(run, Directive(action="cancel", operation_id=operation_id, explanation=explanation), last, now)


def _decide(run: Run, directive: Directive, last: LogSlot | None, now: TimestampMs) -> tuple[Change, ...]:
    if directive.operation_id in run.operations:
        return ()
    _check_not_being_cancelled(run, directive)
    changed, record = carry_out(run, directive, now)
    if not isinstance(run.state, Running):
        return keep_in_tail(changed, (record,), now)
    has_progressed = next_position(run, last) != run.tail.position
    return take_away(run, changed.model_copy(update={"recoveries": 0}) if has_progressed else changed, record, last, now)


def decide_directive(run: Run, directive: Directive) -> tuple[Change, ...]:
    """Have the owner of the running `run` pause or cancel it, because it is too busy for the run to be taken from it.

    A cancel replaces a pause, nothing replaces a cancel. Raises IllegalTransition for a pause of a run that is being cancelled.
    """
    if directive.operation_id in run.operations:
        return ()
    _check_not_being_cancelled(run, directive)
    is_told = run.directive is not None and run.directive.action == directive.action
    told = _remembering(run, directive.operation_id)
    return (SaveRun(told if is_told else told.model_copy(update={"directive": directive})),)


def _check_not_being_cancelled(run: Run, directive: Directive) -> None:
    if directive.action == "pause" and run.directive is not None and run.directive.action == "cancel":
        raise _illegal(run, "is being cancelled; it cannot be paused any more", "paused")


def carry_out(run: Run, directive: Directive, now: TimestampMs, executor: str | None = None) -> tuple[Run, Transition]:
    """`run` paused or cancelled, and the record that says so; `executor` is the owner that obeyed. Raises IllegalTransition."""
    told = Told(executor=executor, explanation=directive.explanation)
    remembering = _remembering(run, directive.operation_id)
    if directive.action == "cancel":
        cancelled, record = enter(remembering, Cancelled(), now, told)
        return with_duties(cancelled, now), record
    paused, record = enter(remembering, Paused(), now, told)
    kept = {
        "paused_from": run.state,
        "waits": run.waits,
        "seen_seq": run.seen_seq,
        "open_child_waits": run.open_child_waits,
    }
    return paused.model_copy(update=kept), record


def let_go(run: Run, reason: QueuedReason, now: TimestampMs, executor: str | None = None) -> tuple[Run, Transition]:
    """The running `run` without its owner: queued for `reason`, or paused or cancelled where that was directed."""
    if run.directive is not None:
        return carry_out(run, run.directive, now, executor)
    return queue(run, Queued(reason=reason), now, Told(executor=executor))


def obeying(
    entered: Run, record: Transition, directive: Directive | None, now: TimestampMs
) -> tuple[Run, tuple[Transition, ...]]:
    """`entered`, the state that `record` says an owner left its run in, and `directive` carried out on top of it.

    So a pause keeps the state that the owner came to. Nothing where the state does not allow it: an end wins, and a stall over a pause.
    """
    target: Status = "cancelled" if directive is not None and directive.action == "cancel" else "paused"
    if directive is None or target not in LEGAL[entered.state.status]:
        return entered, (record,)
    obeyed, obeyed_record = carry_out(entered, directive, now)
    return obeyed, (record, obeyed_record)


def decide_resume(run: Run, operation_id: str, now: TimestampMs, limits: Limits) -> tuple[Change, ...]:
    """paused → where it was, or queued where its time has come or there is news for it. Raises IllegalTransition."""
    if operation_id in run.operations:
        return ()
    if not isinstance(run.state, Paused):
        waiting = " yet; repeat this once it is" if run.directive is not None and run.directive.action == "pause" else ""
        raise _illegal(run, f"is {run.state.status}, not paused{waiting}", "queued")
    resumed, record = _resumed(_remembering(run, operation_id), run.paused_from, now, limits)
    return keep_in_tail(resumed, (record,), now)


def _resumed(run: Run, origin: RunState | None, now: TimestampMs, limits: Limits) -> tuple[Run, Transition]:
    match origin:
        case Scheduled(scheduled_at=time):
            return _line_up(run, "new", time, now, limits) if time <= now else _back(run, origin, time, now)
        case AwaitingRetry(next_attempt_at=time):
            again = run.model_copy(update={"attempts": run.attempts + 1})
            return _line_up(again, "retry", time, now, limits) if time <= now else _back(run, origin, time, now)
        case state if state is not None and state.status in PARKED and not _has_news(run, now):
            resumed, record = _back(run, state, earliest_deadline(run.waits), now)
            kept = {"waits": run.waits, "seen_seq": run.seen_seq, "open_child_waits": run.open_child_waits}
            return resumed.model_copy(update=kept), record
        case _:
            return queue(run, Queued(reason="resumption"), now)


def _line_up(run: Run, reason: QueuedReason, time: TimestampMs, now: TimestampMs, limits: Limits) -> tuple[Run, Transition]:
    queued, record = queue(run, Queued(reason=reason), now)
    return queued.model_copy(update={"ready_at": ready_since(time, now, limits)}), record


def _back(run: Run, state: RunState, due_at: TimestampMs | None, now: TimestampMs) -> tuple[Run, Transition]:
    back, record = enter(run, state, now)
    return back.model_copy(update={"due_at": due_at}), record


def _has_news(run: Run, now: TimestampMs) -> bool:
    deadline = earliest_deadline(run.waits)
    return run.inbox_seq > run.seen_seq or (deadline is not None and deadline <= now)


def decide_wake_up(run: Run, operation_id: str, sleep: str | None, now: TimestampMs) -> tuple[Change, ...]:
    """A message that ends the sleeps named `sleep`, or all of them, that the run is in. Raises IllegalTransition."""
    if operation_id in run.operations:
        return ()
    key = ANY_KEY if sleep is None else sleep
    if run.state.status in PARKED:
        if not wants_any(run, "wakeup", key):
            named = "" if sleep is None else f" named {sleep}"
            raise _illegal(run, f"is {run.state.status} and in no `run.sleep`{named}; there is nothing to wake it from", "queued")
    elif run.state.status not in _WOKEN_LATER:
        raise _illegal(run, f"is {run.state.status}; only a run that is under way can be woken from a `run.sleep`", "queued")
    return tell(_remembering(run, operation_id), (News(kind="wakeup", key=key),), now)


def decide_requeue(run: Run, operation_id: str, now: TimestampMs) -> tuple[Change, ...]:
    """stalled → queued(redelivery) with a fresh clock. Raises IllegalTransition for a run that is not stalled."""
    if operation_id in run.operations:
        return ()
    queued, record = queue(_remembering(run, operation_id), Queued(reason="redelivery"), now)
    return keep_in_tail(queued.model_copy(update={"recoveries": 0}), (record,), now)


def _remembering(run: Run, operation_id: str) -> Run:
    """`run` with the operation among the last MAX_OPERATIONS that it knows."""
    if operation_id in run.operations:
        return run
    return run.model_copy(update={"operations": (*run.operations, operation_id)[-MAX_OPERATIONS:]})


def _illegal(run: Run, detail: str, to_status: Status) -> IllegalTransition:
    return IllegalTransition(f"run {run.id} {detail}", run_id=run.id, from_status=run.state.status, to_status=to_status)
