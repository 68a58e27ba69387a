"""Runs as clients see them."""

from aiki_push.domain.log_records import LogSlot, Transition
from aiki_push.domain.run import Run
from aiki_push.domain.run_states import AwaitingRetry, Cancelled, Completed, Failed, Stalled
from aiki_push.ports.api.runs import ClaimView, RunSummary, RunView
from aiki_push.server.context import ServerContext
from aiki_push.server.stored_values import StoredValues


def summary_of(run: Run) -> RunSummary:
    """What the header alone says."""
    claim = run.claim
    return RunSummary(
        id=run.id,
        workflow=run.workflow,
        version=run.version,
        state=run.state,
        revision=run.revision,
        attempts=run.attempts,
        options=run.options,
        reference=run.reference,
        created_at=run.created_at,
        due_at=run.due_at,
        claim=ClaimView(executor=claim.executor, claimed_at=claim.claimed_at, refreshed_at=claim.refreshed_at) if claim else None,
        offer=run.offer,
        waits=run.waits,
        directive=run.directive,
    )


def view_of(context: ServerContext, run: Run) -> RunView:
    """The run with what it brought, which is in its log."""
    told = last_transition(context, run)
    values = StoredValues(context.payloads, run.namespace, run.id)
    return RunView(
        **vars(summary_of(run)),
        output=values.inline(told.output) if told else None,
        error=told.error if told else None,
        explanation=told.explanation if told else None,
    )


def last_transition(context: ServerContext, run: Run) -> Transition | None:
    """The record of the transition into a state that has something to tell: an output, an error, an explanation."""
    if not isinstance(run.state, Completed | Failed | AwaitingRetry | Cancelled | Stalled):
        return None
    last: LogSlot | None = None if run.tail.records else context.store.last_slot(run.namespace, run.id)
    records = run.tail.records or (last.records if last else ())
    return next((record for record in reversed(records) if isinstance(record, Transition)), None)
