"""Looking at everything that is due and had no hint."""

from dataclasses import dataclass

from aiki_push.domain.values import TimestampMs
from aiki_push.ports.wakeups import Hint
from aiki_push.server.attention.advance import Attention
from aiki_push.server.context import ServerContext


@dataclass(frozen=True, slots=True)
class SweepPlan:
    """What one sweep covers, in milliseconds.

    overdue_ms: runs due for longer than this have lost their hint and are advanced by the sweep itself.
    lookahead_ms: runs due within this time are sent a hint, in case theirs was lost.
    budget_ms: what is not done by then waits for the next sweep.
    page: how many entries of the index one sweep looks at.
    """

    overdue_ms: int = 5_000
    lookahead_ms: int = 60_000
    budget_ms: int = 45_000
    page: int = 1_000


@dataclass(frozen=True, slots=True)
class Swept:
    """What a sweep did. `is_complete` is False where the time budget or the page ended it: the rest waits for the next sweep."""

    advanced: int
    failed: int
    hinted: int
    is_complete: bool


def sweep(context: ServerContext, attention: Attention, plan: SweepPlan) -> Swept:
    """Advance what is overdue, the earliest first, and send hints for what is due soon."""
    now = context.clock.now()
    ends_at_ms = context.clock.monotonic_ms() + plan.budget_ms
    advanced = failed = 0
    entries = context.store.due_runs(until=TimestampMs(now + plan.lookahead_ms), limit=plan.page)
    overdue = [due for due in entries if due.due_at <= now - plan.overdue_ms]
    for due in overdue:
        if context.clock.monotonic_ms() >= ends_at_ms:
            return Swept(advanced, failed, hinted=0, is_complete=False)
        if attention.advance_safely(due.namespace, due.run_id):
            advanced += 1
        else:
            failed += 1
    soon = entries[len(overdue) :]
    context.wakeups.send(*(Hint(namespace=due.namespace, run_id=due.run_id, due_at=due.due_at) for due in soon))
    return Swept(advanced, failed, hinted=len(soon), is_complete=len(entries) < plan.page)
