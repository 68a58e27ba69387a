"""Taking a run from an executor that fell silent."""

from aiki_push.domain.claims import Recovery, decide_recovery
from aiki_push.domain.log_records import LogSlot
from aiki_push.domain.run import Run
from aiki_push.ports.store import CommitRefused
from aiki_push.server.context import MAX_ROUNDS, ServerContext, overcrowded


def recover(context: ServerContext, run: Run) -> None:
    """Release the claim of `run`, unless its owner turns out to be alive. Races with the owner's appends until one of them wins."""
    for attempt in range(MAX_ROUNDS):
        changes = decide_recovery(run, _found(context, run), context.clock.now(), context.limits)
        if not changes:
            return
        try:
            context.commit(changes)
            return
        except CommitRefused:
            context.back_off(attempt)
            run = context.store.load(run.namespace, run.id)
    raise overcrowded(run.id)


def _found(context: ServerContext, run: Run) -> Recovery:
    last = context.store.last_slot(run.namespace, run.id)
    return Recovery(last=last, at_tail=_slot_at_tail(context, run, last))


def _slot_at_tail(context: ServerContext, run: Run, last: LogSlot | None) -> LogSlot | None:
    if last is None or last.position < run.tail.position:
        return None
    if last.position == run.tail.position:
        return last
    first = context.store.log(run.namespace, run.id, after=run.tail.position - 1, max_bytes=1).slots[0]
    return first if first.position == run.tail.position else None
