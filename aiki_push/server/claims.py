"""Owning a run: claim it, read it, keep it, hand it back unused."""

from collections.abc import Iterable

from aiki_push.domain.claims import (
    AlreadyMine,
    Claimer,
    NotAvailable,
    Owner,
    decide_claim,
    decide_corrupt,
    decide_refresh,
    decide_release,
)
from aiki_push.domain.inbox import Message
from aiki_push.domain.log_records import LogSlot, Tail
from aiki_push.domain.run import Run
from aiki_push.domain.values import DurationMs, RunId
from aiki_push.ports.api.claims import (
    Claimed,
    ClaimedRun,
    ClaimRun,
    GetInbox,
    GetLog,
    Inbox,
    LogAnswer,
    NotClaimed,
    RefreshClaim,
    Refreshed,
    ReleaseClaim,
    Released,
)
from aiki_push.ports.store import CommitRefused, RunContents
from aiki_push.server.claim_tokens import ClaimToken, mint, read
from aiki_push.server.context import MAX_ROUNDS, ServerContext, overcrowded

MAX_LOG_ANSWER_BYTES = 2 * 1024 * 1024
"""JSON of log slots and messages in one answer. Lambda's 6 MB hold the answer with its quotes escaped once more, which can double it."""


def claim(context: ServerContext, namespace: str, request: ClaimRun) -> Claimed | NotClaimed:
    """queued → running, and all that the new owner needs to go on; or why not."""
    claimer = Claimer(claim_id=request.claim_id, executor=request.executor, revision=request.revision)
    return take(context, namespace, request.run_id, claimer, max_bytes=MAX_LOG_ANSWER_BYTES)


def take(context: ServerContext, namespace: str, run_id: RunId, claimer: Claimer, *, max_bytes: int) -> Claimed | NotClaimed:
    """As `claim`, with about `max_bytes` of the log and at least one slot."""
    for attempt in range(MAX_ROUNDS):
        run = context.store.load(namespace, run_id)
        match decide_claim(run, claimer, context.clock.now(), context.limits):
            case NotAvailable(is_taken=is_taken):
                return NotClaimed(reason="already_claimed" if is_taken else "not_queued")
            case AlreadyMine():
                return _answer(context, run, claimer, max_bytes)
            case changes:
                try:
                    context.commit(changes)
                    return _answer(context, run, claimer, max_bytes)
                except CommitRefused:
                    context.back_off(attempt)
    raise overcrowded(run_id)


def _answer(context: ServerContext, before: Run, claimer: Claimer, max_bytes: int) -> Claimed | NotClaimed:
    """Read the run after the claim: what was appended before it is there, and nothing can be appended behind its back any more."""
    contents = context.store.load_contents(before.namespace, before.id, max_bytes=max_bytes)
    run = contents.run
    if run.claim is None or run.claim.claim_id != claimer.claim_id:
        return NotClaimed(reason="already_claimed")
    last = _last_slot(context, contents)
    if _is_corrupt(run, contents.slots, last):
        context.change(run.namespace, run.id, lambda now: decide_corrupt(now, last, context.clock.now()) if now == run else ())
        return NotClaimed(reason="not_queued")
    is_first = last is None or last.position < run.tail.position
    position = run.tail.position if last is None or is_first else last.position + 1
    token = ClaimToken(Owner(claimer.claim_id, run.revision), position, is_first)
    return Claimed(
        run=ClaimedRun(
            id=run.id,
            workflow=run.workflow,
            version=run.version,
            revision=run.revision,
            attempts=run.attempts,
            options=run.options,
            created_at=run.created_at,
        ),
        slots=contents.slots,
        log_is_complete=contents.is_complete,
        tail=run.tail if is_first else Tail(position=position, records=()),
        messages=contents.messages,
        inbox_seq=run.inbox_seq,
        position=position,
        token=mint(context.seals, run.namespace, run.id, token),
        now=context.clock.now(),
        claim_idle_timeout_ms=DurationMs(context.limits.claim_idle_timeout_ms),
    )


def _last_slot(context: ServerContext, contents: RunContents) -> LogSlot | None:
    if not contents.is_complete:
        return context.store.last_slot(contents.run.namespace, contents.run.id)
    return contents.slots[-1] if contents.slots else None


def _is_corrupt(run: Run, slots: Iterable[LogSlot], last: LogSlot | None) -> bool:
    """Whether the log has a gap, or a slot from the tail on that the present owner did not write."""
    claim_id = run.claim.claim_id if run.claim else None
    seen = tuple(slots)
    has_gap = any(slot.position != index for index, slot in enumerate(seen))
    is_short = run.tail.position > (last.position + 1 if last else 0)
    is_foreign = any(
        slot.claim_id != claim_id for slot in (*seen, *([last] if last else [])) if slot.position >= run.tail.position
    )
    return has_gap or is_short or is_foreign


def refresh(context: ServerContext, namespace: str, request: RefreshClaim) -> Refreshed:
    """The claim lives on."""
    owner = read(context.seals, namespace, request.run_id, request.token).owner
    now = context.clock.now()
    context.change(namespace, request.run_id, lambda run: decide_refresh(run, owner, now, context.limits))
    return Refreshed(refreshed_at=now, claim_idle_timeout_ms=DurationMs(context.limits.claim_idle_timeout_ms))


def release(context: ServerContext, namespace: str, request: ReleaseClaim) -> Released:
    """The run is queued again; nothing of it was executed."""
    owner = read(context.seals, namespace, request.run_id, request.token).owner
    last = context.store.last_slot(namespace, request.run_id)
    context.change(namespace, request.run_id, lambda run: decide_release(run, owner, last, context.clock.now()))
    return Released(revision=owner.revision + 1)


def log(context: ServerContext, namespace: str, request: GetLog) -> LogAnswer:
    """The rest of a log that was too long for the claim's answer."""
    context.store.load(namespace, request.run_id)
    page = context.store.log(namespace, request.run_id, after=request.after, max_bytes=MAX_LOG_ANSWER_BYTES)
    return LogAnswer(slots=page.slots, is_last=page.is_last)


def messages_after(context: ServerContext, namespace: str, run_id: RunId, seq: int) -> tuple[Message, ...]:
    """As many of the messages after the `seq`th as an answer holds, in order."""
    return context.store.inbox(namespace, run_id, after=seq, max_bytes=MAX_LOG_ANSWER_BYTES)


def inbox(context: ServerContext, namespace: str, request: GetInbox) -> Inbox:
    """Messages after the last one seen, and where the run stands."""
    run = context.store.load(namespace, request.run_id)
    is_news = run.inbox_seq > request.after
    return Inbox(
        messages=messages_after(context, namespace, request.run_id, request.after) if is_news else (),
        inbox_seq=run.inbox_seq,
        status=run.state.status,
        revision=run.revision,
        directive=run.directive,
    )
