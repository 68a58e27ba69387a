"""Starting runs, reading them, waiting for their end, and requeueing the stalled."""

from aiki_push.domain.canonical_json import NO_INPUT_HASH, input_hash, parse_json
from aiki_push.domain.errors import InvalidRequest, NotSerializable, ReferenceConflict
from aiki_push.domain.ids import ulid
from aiki_push.domain.log_records import LogSlot, Transition
from aiki_push.domain.run import Run, RunOptions
from aiki_push.domain.run_states import Cancelled, Completed, Failed, Stalled
from aiki_push.domain.run_transitions import is_terminal
from aiki_push.domain.starts import Start, decide_requeue, decide_start, is_same_start
from aiki_push.domain.values import DurationMs, RunId
from aiki_push.ports.api.runs import (
    ClaimView,
    GetHistory,
    GetPayload,
    GetRun,
    History,
    HistoryEntry,
    PayloadContent,
    RequeueRun,
    RunView,
    StartRun,
    WaitRun,
)
from aiki_push.ports.store import CommitRefused
from aiki_push.server.context import ServerContext
from aiki_push.server.stored_values import StoredValues

FIRST_POLL_MS = 25
LONGEST_POLL_MS = 500
HISTORY_PAGE_BYTES = 512 * 1024
_CURSOR = "history"


def start(context: ServerContext, namespace: str, request: StartRun) -> RunView:
    """Create the run; the same request again answers the run that the first one made."""
    asked = _asked(context, namespace, request)
    try:
        context.commit(decide_start(asked, context.clock.now()))
    except CommitRefused:
        existing = context.store.load(namespace, asked.run_id)
        if not is_same_start(existing, asked):
            raise ReferenceConflict(
                f"run id {asked.run_id} is in use for another workflow, version, input or options; make a new id for a new run",
                run_id=asked.run_id,
            ) from None
    return _view(context, context.store.load(namespace, asked.run_id))


def _asked(context: ServerContext, namespace: str, request: StartRun) -> Start:
    run_id = request.run_id or RunId(ulid(context.clock.now(), context.entropy.token(10)))
    has_input = "input" in request.model_fields_set
    try:
        digest = input_hash(request.input) if has_input else NO_INPUT_HASH
    except NotSerializable as error:
        raise InvalidRequest(str(error), errors=[{"field": "input", "message": str(error)}]) from None
    values = StoredValues(context.payloads, namespace, run_id)
    return Start(
        namespace=namespace,
        run_id=run_id,
        workflow=request.workflow,
        version=request.version,
        input=values.store(request.input, field="input") if has_input else None,
        input_hash=digest,
        options=RunOptions(pool=request.options.pool, priority=request.options.priority),
    )


def get(context: ServerContext, namespace: str, request: GetRun) -> RunView:
    """The run as it is now."""
    return _view(context, context.store.load(namespace, request.run_id))


def wait(context: ServerContext, namespace: str, request: WaitRun) -> RunView:
    """The run at its end, or as it is when the time asked for, or the longest time that the server waits, has passed."""
    until_ms = context.clock.monotonic_ms() + min(request.timeout_ms, context.max_wait_ms)
    poll_ms = FIRST_POLL_MS
    while True:
        run = context.store.load(namespace, request.run_id)
        left_ms = int(until_ms - context.clock.monotonic_ms())
        if is_terminal(run) or left_ms <= 0:
            return _view(context, run)
        context.clock.sleep(DurationMs(min(poll_ms, left_ms)))
        poll_ms = min(poll_ms * 2, LONGEST_POLL_MS)


def history(context: ServerContext, namespace: str, request: GetHistory) -> History:
    """A page of what the run did."""
    run = context.store.load(namespace, request.run_id)
    subject = f"{namespace}#{run.id}"
    after = -1 if request.cursor is None else _position(context, subject, request.cursor)
    page = context.store.log(namespace, run.id, after=after, max_bytes=HISTORY_PAGE_BYTES)
    entries = [HistoryEntry(position=slot.position, record=record) for slot in page.slots for record in slot.records]
    last = page.slots[-1].position if page.slots else after
    if not page.is_last:
        return History(entries=tuple(entries), next_cursor=context.seals.seal(_CURSOR, subject, last))
    if run.tail.position > last:
        entries += [HistoryEntry(position=run.tail.position, record=record) for record in run.tail.records]
    return History(entries=tuple(entries))


def _position(context: ServerContext, subject: str, cursor: str) -> int:
    match context.seals.open(_CURSOR, subject, cursor):
        case int(after):
            return after
        case _:
            message = "this cursor was not made by this server for this run; leave it out to begin at the start"
            raise InvalidRequest(message, errors=[{"field": "cursor", "message": message}])


def requeue(context: ServerContext, namespace: str, request: RequeueRun) -> RunView:
    """The stalled run, back in its queue."""
    context.change(namespace, request.run_id, lambda run: decide_requeue(run, request.operation_id, context.clock.now()))
    return _view(context, context.store.load(namespace, request.run_id))


def payload(context: ServerContext, namespace: str, request: GetPayload) -> PayloadContent:
    """A value that was too large for the log."""
    run = context.store.load(namespace, request.run_id)
    reference = context.payloads.get(namespace, run.id, request.sha256)
    return PayloadContent(value=parse_json(reference))


def _view(context: ServerContext, run: Run) -> RunView:
    told = _told(context, run)
    values = StoredValues(context.payloads, run.namespace, run.id)
    claim = run.claim
    return RunView(
        id=run.id,
        workflow=run.workflow,
        version=run.version,
        state=run.state,
        revision=run.revision,
        attempts=run.attempts,
        options=run.options,
        created_at=run.created_at,
        due_at=run.due_at,
        claim=ClaimView(executor=claim.executor, claimed_at=claim.claimed_at, refreshed_at=claim.refreshed_at) if claim else None,
        offer=run.offer,
        output=values.inline(told.output) if told else None,
        error=told.error if told else None,
        explanation=told.explanation if told else None,
    )


def _told(context: ServerContext, run: Run) -> Transition | None:
    """The record of the transition into a state that has something to tell: an output, an error, an explanation."""
    if not isinstance(run.state, Completed | Failed | Cancelled | Stalled):
        return None
    last: LogSlot | None = None if run.tail.records else context.store.last_slot(run.namespace, run.id)
    records = run.tail.records or (last.records if last else ())
    return next((record for record in reversed(records) if isinstance(record, Transition)), None)
