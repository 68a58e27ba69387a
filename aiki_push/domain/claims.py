"""Who owns a run: claiming it, staying its owner, handing it back, and taking it away from an owner that fell silent."""

from dataclasses import dataclass
from typing import TypeAlias

from aiki_push.domain.changes import Change, SaveRun
from aiki_push.domain.controls import let_go, obeying
from aiki_push.domain.errors import IllegalTransition, RevisionConflict
from aiki_push.domain.limits import Limits
from aiki_push.domain.log_records import LogSlot
from aiki_push.domain.run import Claim, Run
from aiki_push.domain.run_states import Queued, Running, Stalled
from aiki_push.domain.run_transitions import Told, enter, keep_in_tail, next_position, seal, take_away
from aiki_push.domain.values import TimestampMs


@dataclass(frozen=True, slots=True)
class Owner:
    """The claim that an executor says it holds: which one, and the revision at which it began."""

    claim_id: str
    revision: int


@dataclass(frozen=True, slots=True)
class Claimer:
    """Who wants a run, and the only revision at which it wants it, if it says so. `request_id`: the request that pulls it, if one does."""

    claim_id: str
    executor: str
    revision: int | None = None
    request_id: str | None = None


@dataclass(frozen=True, slots=True)
class AlreadyMine:
    """The claimer holds this very claim: its earlier answer was lost."""


@dataclass(frozen=True, slots=True)
class NotAvailable:
    """Someone else has the run (`is_taken`), or it is not ready."""

    is_taken: bool


ClaimDecision: TypeAlias = AlreadyMine | NotAvailable | tuple[Change, ...]


def decide_claim(run: Run, claimer: Claimer, now: TimestampMs, limits: Limits) -> ClaimDecision:
    """queued → running under a new claim, where the run is ready at the claimer's revision."""
    if isinstance(run.state, Running):
        is_own = run.claim is not None and run.claim.claim_id == claimer.claim_id
        return AlreadyMine() if is_own else NotAvailable(is_taken=True)
    if not isinstance(run.state, Queued):
        return NotAvailable(is_taken=False)
    if claimer.revision is not None and claimer.revision != run.revision:
        return NotAvailable(is_taken=True)
    running, record = enter(run, Running(), now, Told(executor=claimer.executor))
    claim = Claim(
        claim_id=claimer.claim_id,
        executor=claimer.executor,
        claimed_at=now,
        refreshed_at=now,
        request_id=claimer.request_id,
    )
    # A pulled run is found by its request, in the order of its queue.
    ready_at = run.ready_at if claimer.request_id is not None else None
    due_at = now + limits.claim_idle_timeout_ms
    return keep_in_tail(running.model_copy(update={"claim": claim, "ready_at": ready_at, "due_at": due_at}), (record,), now)


def check_owner(run: Run, owner: Owner) -> Claim:
    """The run's claim, if it is `owner`'s. Raises RevisionConflict once the run moved on, by whatever hand."""
    if run.revision != owner.revision or run.claim is None or run.claim.claim_id != owner.claim_id:
        raise RevisionConflict(
            f"run {run.id} is at revision {run.revision} and {run.state.status}; the claim taken at revision {owner.revision} "
            "no longer holds: stop executing it",
            run_id=run.id,
            expected_revision=owner.revision,
            revision=run.revision,
        )
    return run.claim


def decide_refresh(run: Run, owner: Owner, now: TimestampMs, limits: Limits) -> tuple[Change, ...]:
    """The claim lives on from `now`. Raises RevisionConflict."""
    refreshed = check_owner(run, owner).model_copy(update={"refreshed_at": now})
    return (SaveRun(run.model_copy(update={"claim": refreshed, "due_at": now + limits.claim_idle_timeout_ms})),)


def decide_release(run: Run, owner: Owner, last: LogSlot | None, now: TimestampMs) -> tuple[Change, ...]:
    """running → queued(released), or as directed, where the owner has written nothing. Raises RevisionConflict, IllegalTransition."""
    check_owner(run, owner)
    if next_position(run, last) != run.tail.position:
        raise IllegalTransition(
            f"run {run.id} has progressed under this claim; only a run of which nothing was executed can be released",
            run_id=run.id,
            from_status=run.state.status,
            to_status="queued",
        )
    released, record = let_go(run, "released", now)
    return keep_in_tail(released, (record,), now)


@dataclass(frozen=True, slots=True)
class Recovery:
    """What recovery looks at: `last` is the last slot of the log, `at_tail` the slot at the tail's position, if it exists."""

    last: LogSlot | None
    at_tail: LogSlot | None


def decide_recovery(run: Run, found: Recovery, now: TimestampMs, limits: Limits) -> tuple[Change, ...]:
    """Take the run from an owner that fell silent: running → queued(recovery), or as directed, or stalled.

    It is stalled where it loops or its log is corrupt. An owner whose last append is recent is alive: only `due_at` moves.
    """
    claim, last = run.claim, found.last
    if claim is None or not isinstance(run.state, Running):
        return ()
    has_progressed = last is not None and last.position >= run.tail.position
    heard_at = max(claim.refreshed_at, last.at) if has_progressed and last is not None else claim.refreshed_at
    if heard_at + limits.claim_idle_timeout_ms > now:
        return (SaveRun(run.model_copy(update={"due_at": heard_at + limits.claim_idle_timeout_ms})),)
    if has_progressed and (found.at_tail is None or found.at_tail.claim_id != claim.claim_id):
        return decide_corrupt(run, last, now)
    recoveries = 0 if has_progressed else run.recoveries + 1
    if recoveries >= limits.max_recoveries and run.directive is None:
        explanation = (
            f"{recoveries} executors in a row died or fell silent before they could record anything; the last: {claim.executor}"
        )
        stalled, record = enter(run, Stalled(reason="crash_loop"), now, Told(executor=claim.executor, explanation=explanation))
        return take_away(run, stalled, record, last, now)
    taken, record = let_go(run, "recovery", now, claim.executor)
    return take_away(run, taken.model_copy(update={"recoveries": recoveries}), record, last, now)


def decide_corrupt(run: Run, last: LogSlot | None, now: TimestampMs) -> tuple[Change, ...]:
    """running → stalled(corrupt_log), then cancelled where directed: the log has a gap, or a slot that its owner did not write."""
    explanation = (
        f"the log of run {run.id} has a gap or a slot at or after position {run.tail.position} that the run's owner did not write; "
        "look at its history before you requeue it"
    )
    stalled, record = enter(run, Stalled(reason="corrupt_log"), now, Told(explanation=explanation))
    left, records = obeying(stalled, record, run.directive, now)
    return seal(left, next_position(run, last), (*run.tail.records, *records), now)
