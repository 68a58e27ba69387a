"""What an owner writes: appends, the end of its segment, and the hand-back after an append that got no answer."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeVar

from aiki_push.domain.changes import Change, PutSlot, SaveRun
from aiki_push.domain.checkpoints import (
    Checkpoint,
    CompleteRun,
    FailRun,
    ParkRun,
    RetryRun,
    RunEnd,
    StallRun,
    YieldRun,
    append,
    decide_end,
    decide_hand_back,
    is_repeated,
)
from aiki_push.domain.claims import check_owner, decide_corrupt
from aiki_push.domain.errors import InvalidRequest, InvalidToken, LogFull, PayloadTooLarge, RevisionConflict
from aiki_push.domain.log_records import CallEnded, InputRecord, KnownRecord, LogSlot, TaskCompleted, TaskStarted, Transition
from aiki_push.domain.messages import tell
from aiki_push.domain.run import Run
from aiki_push.domain.values import Json, PayloadReference, RunId
from aiki_push.ports.api.calls import Call
from aiki_push.ports.api.checkpoints import (
    MAX_CHECKPOINT_BYTES,
    AppendCheckpoint,
    Appended,
    Complete,
    Ended,
    Fail,
    HandBack,
    InboxMoved,
    Overtaken,
    Park,
    Retry,
    SegmentEnd,
    Stall,
    Yield,
)
from aiki_push.ports.store import CommitRefused
from aiki_push.server.call_checks import check_calls, check_distinct
from aiki_push.server.calls import CallsOf, Outcome
from aiki_push.server.claim_tokens import ClaimToken, mint, read
from aiki_push.server.claims import messages_after
from aiki_push.server.context import MAX_ROUNDS, ServerContext, overcrowded
from aiki_push.server.stored_values import StoredValues

CheckpointAnswer = Appended | Ended | InboxMoved | Overtaken


def checkpoint(context: ServerContext, namespace: str, request: AppendCheckpoint) -> CheckpointAnswer:
    """Write the records and, where asked for, end the segment. One checkpoint id is one write, however often it is sent."""
    token = read(context.seals, namespace, request.run_id, request.token)
    if token.position != request.position:
        raise InvalidToken(
            f"the claim token is for position {token.position} of run {request.run_id}, not for {request.position}",
            run_id=request.run_id,
        )
    _check_records(request)
    _check_calls(request)
    values = StoredValues(context.payloads, namespace, request.run_id)
    written = Checkpoint(
        owner=token.owner,
        checkpoint_id=request.checkpoint_id,
        position=token.position,
        is_first=token.is_first,
        records=values.store_records(request.records),
    )
    if request.end is None:
        return _append(context, namespace, request.run_id, written, request.calls)
    match request.end:
        case HandBack():
            return _hand_back(context, namespace, request.run_id, written)
        case end:
            return _end(context, namespace, request.run_id, written, end)


def _check_records(request: AppendCheckpoint) -> None:
    faults: list[Json] = [
        {"field": f"records[{index}]", "message": fault}
        for index, record in enumerate(request.records)
        if (fault := _fault(record, is_hand_back=isinstance(request.end, HandBack)))
    ]
    if faults:
        raise InvalidRequest("some records cannot be written by an executor", errors=faults)
    size = sum(len(record.model_dump_json().encode()) for record in request.records)
    if size > MAX_CHECKPOINT_BYTES:
        raise PayloadTooLarge(
            f"the records of this checkpoint are {size} bytes of JSON; the limit is {MAX_CHECKPOINT_BYTES}. Send them in parts",
            field="records",
            size=size,
            limit=MAX_CHECKPOINT_BYTES,
        )


def _fault(record: KnownRecord, *, is_hand_back: bool) -> str | None:
    match record:
        case InputRecord() | Transition() | CallEnded():
            return f"{record.type} records are the server's to write"
        case TaskStarted() if is_hand_back:
            return "a hand-back carries outcomes only, nothing that starts an effect"
        case TaskStarted(input=PayloadReference()) | TaskCompleted(output=PayloadReference()):
            return "values travel in the record; the server decides where they are stored"
        case _:
            return None


def _check_calls(request: AppendCheckpoint) -> None:
    check_calls(request.calls)
    if request.calls and request.end is not None:
        message = "calls on other runs end no segment; send them in a checkpoint of their own"
        raise InvalidRequest(message, errors=[{"field": "calls", "message": message}])


def _append(context: ServerContext, namespace: str, run_id: RunId, written: Checkpoint, calls: tuple[Call, ...]) -> Appended:
    if written.position >= context.limits.max_log_slots:
        raise LogFull(f"the log of run {run_id} has {written.position} slots, the limit", run_id=run_id)
    calls_of = CallsOf(context, namespace, run_id)
    for attempt in range(MAX_ROUNDS):
        resolved = [calls_of.resolve(call, attempt) for call in calls]
        check_distinct([outcome for outcome, _ in resolved])
        changes, ended = _appended(context, namespace, run_id, written, resolved)
        try:
            context.commit(changes)
        except CommitRefused as refused:
            found = _slot_of(run_id, refused)
            if found is None:  # another run that a call is about was written meanwhile
                calls_of.learn(refused)
                context.back_off(attempt)
                continue
            slot = _own_slot(context, context.store.load(namespace, run_id), written, found)
            if slot.checkpoint_id != written.checkpoint_id:
                raise _used_token(run_id, written) from None
            ended = _ended_in(slot)
        token = _next_token(context, namespace, run_id, written)
        return Appended(position=written.position + 1, token=token, ended=ended)
    raise overcrowded(run_id)


def _appended(
    context: ServerContext,
    namespace: str,
    run_id: RunId,
    written: Checkpoint,
    resolved: Sequence[tuple[Outcome | None, CallEnded]],
) -> tuple[tuple[Change, ...], tuple[CallEnded, ...]]:
    """The slot, with the outcomes of the calls at its end, and what the calls change in other runs and in the inbox of this one."""
    ended = tuple(record for _, record in resolved)
    outcomes = [outcome for outcome, _ in resolved if outcome is not None]
    news = tuple(news for outcome in outcomes for news in outcome.news)
    run = context.store.load(namespace, run_id) if written.is_first or news else None
    if run is not None:
        check_owner(run, written.owner)
    now = context.clock.now()
    tail = run.tail.records if run is not None and written.is_first else ()
    slot = append(namespace, run_id, replace(written, records=(*written.records, *ended)), tail, now)
    told = tell(run, news, now) if run is not None and news else ()
    return (slot, *(change for outcome in outcomes for change in outcome.changes), *told), ended


def _ended_in(slot: LogSlot) -> tuple[CallEnded, ...]:
    return tuple(record for record in slot.records if isinstance(record, CallEnded))


def _slot_of(run_id: RunId, refused: CommitRefused) -> LogSlot | None:
    """The slot of the run itself that stood in the way, if one did."""
    return next(
        (
            refusal.found
            for refusal in refused.refusals
            if isinstance(refusal.change, PutSlot) and refusal.change.run_id == run_id and isinstance(refusal.found, LogSlot)
        ),
        None,
    )


def _own_slot(context: ServerContext, run: Run, written: Checkpoint, found: LogSlot | None) -> LogSlot:
    """`found`, which took the checkpoint's slot, if this claim wrote it and the run is still its owner's.

    A stranger's slot in a run that we own means that the log is corrupt, which stalls the run. Raises RevisionConflict.
    """
    check_owner(run, written.owner)
    if found is None or found.claim_id != written.owner.claim_id:
        last = context.store.last_slot(run.namespace, run.id)
        context.change(run.namespace, run.id, lambda now: decide_corrupt(now, last, context.clock.now()) if now == run else ())
        raise RevisionConflict(
            f"a slot of run {run.id} was written by someone who did not own it; the run is stalled", run_id=run.id
        )
    return found


def _used_token(run_id: RunId, written: Checkpoint) -> InvalidToken:
    message = f"position {written.position} of run {run_id} was written by another checkpoint of this claim; use the latest token"
    return InvalidToken(message, run_id=run_id)


def _next_token(context: ServerContext, namespace: str, run_id: RunId, written: Checkpoint) -> str:
    token = ClaimToken(written.owner, written.position, written.is_first).after_append()
    return mint(context.seals, namespace, run_id, token)


def _end(context: ServerContext, namespace: str, run_id: RunId, written: Checkpoint, end: SegmentEnd) -> Ended | InboxMoved:
    run_end = _run_end(StoredValues(context.payloads, namespace, run_id), end)

    def decide(run: Run) -> tuple[Change, ...] | InboxMoved:
        check_owner(run, written.owner)
        if isinstance(end, Park) and run.inbox_seq != end.seen_seq:
            return InboxMoved(messages=messages_after(context, namespace, run_id, end.seen_seq))
        return decide_end(run, written, run_end, context.clock.now(), context.limits)

    answer = _commit_end(context, namespace, run_id, written, decide)
    if isinstance(answer, LogSlot):
        raise _used_token(run_id, written)
    return answer


def _run_end(values: StoredValues, end: SegmentEnd) -> RunEnd:
    match end:
        case Complete(output=output):
            return CompleteRun(output=values.store(output.value, field="output"))
        case Fail(cause=cause, error=error):
            return FailRun(cause=cause, error=error)
        case Retry(cause=cause, error=error, next_attempt_at=next_attempt_at):
            return RetryRun(cause=cause, error=error, next_attempt_at=next_attempt_at)
        case Park(waits=waits, seen_seq=seen_seq):
            return ParkRun(waits=waits, seen_seq=seen_seq)
        case Stall(reason=reason, explanation=explanation):
            return StallRun(reason=reason, explanation=explanation)
        case Yield(explanation=explanation):
            return YieldRun(explanation=explanation)


def _hand_back(context: ServerContext, namespace: str, run_id: RunId, written: Checkpoint) -> Ended | Overtaken:
    def decide(run: Run) -> tuple[Change, ...]:
        return decide_hand_back(run, written, context.clock.now())

    answer = _commit_end(context, namespace, run_id, written, decide)
    if isinstance(answer, Ended):
        return answer
    token = _next_token(context, namespace, run_id, written)
    return Overtaken(position=written.position + 1, token=token, ended=_ended_in(answer))


Moved = TypeVar("Moved", bound=InboxMoved)


def _commit_end(
    context: ServerContext,
    namespace: str,
    run_id: RunId,
    written: Checkpoint,
    decide: Callable[[Run], tuple[Change, ...] | Moved],
) -> Ended | LogSlot | Moved:
    """Commit what `decide` says; a LogSlot is another append of this claim that stands where the checkpoint wants to be."""
    for attempt in range(MAX_ROUNDS):
        run = context.store.load(namespace, run_id)
        if is_repeated(run, written):
            return Ended(status=run.state.status, revision=run.revision)
        changes = decide(run)
        if isinstance(changes, InboxMoved):
            return changes
        try:
            context.commit(changes)
            [ended] = [change.run for change in changes if isinstance(change, SaveRun)]
            return Ended(status=ended.state.status, revision=ended.revision)
        except CommitRefused as refused:
            if found := refused.found_slot():
                slot = _own_slot(context, context.store.load(namespace, run_id), written, found)
                if slot.checkpoint_id != written.checkpoint_id:
                    return slot
            context.back_off(attempt)
    raise overcrowded(run_id)
