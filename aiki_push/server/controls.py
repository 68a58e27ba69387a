"""Controlling runs from outside. Each use case answers where the run stands then."""

from collections.abc import Callable
from typing import TypeAlias

from aiki_push.domain.changes import Change
from aiki_push.domain.controls import (
    decide_cancel,
    decide_directive,
    decide_pause,
    decide_requeue,
    decide_resume,
    decide_wake_up,
)
from aiki_push.domain.log_records import LogSlot
from aiki_push.domain.run import Directive, Run
from aiki_push.domain.run_states import Running
from aiki_push.ports.api.controls import CancelRun, PauseRun, RequeueRun, ResumeRun, WakeUpRun
from aiki_push.ports.api.runs import RunView
from aiki_push.ports.store import CommitRefused
from aiki_push.server.context import MAX_ROUNDS, ServerContext, overcrowded
from aiki_push.server.run_views import view_of

FENCE_ROUNDS = 5
"""After so many lost races for the next slot of a run's log, its owner is told to pause or cancel the run itself."""

Decide: TypeAlias = Callable[[Run, LogSlot | None], tuple[Change, ...]]
"""What to write, given the header and, of a running run, the last slot of its log."""


def pause(context: ServerContext, namespace: str, request: PauseRun) -> RunView:
    """The run, paused, or running with the directive to pause."""

    def decide(run: Run, last: LogSlot | None) -> tuple[Change, ...]:
        return decide_pause(run, request.operation_id, last, context.clock.now())

    _take(context, namespace, request.run_id, Directive(action="pause", operation_id=request.operation_id), decide)
    return _view(context, namespace, request.run_id)


def cancel(context: ServerContext, namespace: str, request: CancelRun) -> RunView:
    """The run, cancelled, or running with the directive to cancel."""
    cancel_run(context, namespace, request.run_id, request.operation_id, request.explanation)
    return _view(context, namespace, request.run_id)


def cancel_run(context: ServerContext, namespace: str, run_id: str, operation_id: str, explanation: str | None) -> None:
    """Cancel the run, or have its owner do so soon. Done once per operation id.

    Raises NotFound, IllegalTransition (it has ended), StorageUnavailable.
    """

    def decide(run: Run, last: LogSlot | None) -> tuple[Change, ...]:
        return decide_cancel(run, operation_id, explanation, last, context.clock.now())

    directive = Directive(action="cancel", operation_id=operation_id, explanation=explanation)
    _take(context, namespace, run_id, directive, decide)


def _take(context: ServerContext, namespace: str, run_id: str, directive: Directive, decide: Decide) -> None:
    """Commit what `decide` says, in a race with the run's owner, if it has one; one that is too fast gets `directive`."""
    for attempt in range(MAX_ROUNDS):
        run = context.store.load(namespace, run_id)
        is_running = isinstance(run.state, Running)
        changes = decide(run, context.store.last_slot(namespace, run_id) if is_running else None)
        if not changes:
            return
        try:
            context.commit(decide_directive(run, directive) if is_running and attempt >= FENCE_ROUNDS else changes)
            return
        except CommitRefused:
            context.back_off(attempt)
    raise overcrowded(run_id)


def resume(context: ServerContext, namespace: str, request: ResumeRun) -> RunView:
    """The paused run, back where it was, or queued."""

    def decide(run: Run) -> tuple[Change, ...]:
        return decide_resume(run, request.operation_id, context.clock.now(), context.limits)

    context.change(namespace, request.run_id, decide)
    return _view(context, namespace, request.run_id)


def wake_up(context: ServerContext, namespace: str, request: WakeUpRun) -> RunView:
    """The run with the message that ends its sleeps in its inbox."""

    def decide(run: Run) -> tuple[Change, ...]:
        return decide_wake_up(run, request.operation_id, request.sleep, context.clock.now())

    context.change(namespace, request.run_id, decide)
    return _view(context, namespace, request.run_id)


def requeue(context: ServerContext, namespace: str, request: RequeueRun) -> RunView:
    """The stalled run, back in its queue."""
    context.change(namespace, request.run_id, lambda run: decide_requeue(run, request.operation_id, context.clock.now()))
    return _view(context, namespace, request.run_id)


def _view(context: ServerContext, namespace: str, run_id: str) -> RunView:
    return view_of(context, context.store.load(namespace, run_id))
