"""Starting runs, reading them, waiting for their end, and requeueing the stalled."""

from aiki_push.domain.canonical_json import NO_INPUT_HASH, input_hash, parse_json
from aiki_push.domain.errors import InvalidRequest, NotFound, NotSerializable, ReferenceConflict
from aiki_push.domain.ids import ulid
from aiki_push.domain.run import Run, RunOptions, RunReference
from aiki_push.domain.run_transitions import is_terminal
from aiki_push.domain.starts import Start, check_holder, decide_requeue, decide_start, is_same_start
from aiki_push.domain.values import DurationMs, RunId
from aiki_push.ports.api.runs import (
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
from aiki_push.server.context import MAX_ROUNDS, ServerContext, overcrowded
from aiki_push.server.run_views import view_of
from aiki_push.server.stored_values import StoredValues

FIRST_POLL_MS = 25
LONGEST_POLL_MS = 500
HISTORY_PAGE_BYTES = 512 * 1024
_CURSOR = "history"


def start(context: ServerContext, namespace: str, request: StartRun) -> RunView:
    """Create the run; the same request again, or one with the same reference and input, answers the run that the first one made."""
    run_id = request.run_id or RunId(ulid(context.clock.now(), context.entropy.token(10)))
    digest = _input_hash(request)
    for attempt in range(MAX_ROUNDS):
        named = _named(context, namespace, request)
        holder = _holder(context, named)
        if holder is not None and request.reference is not None:
            return view_of(context, check_holder(holder, digest, request.reference.conflict_policy))
        asked = _asked(context, namespace, request, run_id, digest)
        try:
            context.commit(decide_start(asked, context.clock.now(), over=named))
        except CommitRefused as refused:
            existing = refused.found_run()
            if existing is None:
                context.back_off(attempt)
                continue
            if not is_same_start(existing, asked):
                raise ReferenceConflict(
                    f"run id {run_id} is in use for another workflow, version, input, options or reference; "
                    "make a new id for a new run",
                    run_id=run_id,
                ) from None
        return view_of(context, context.store.load(namespace, run_id))
    raise overcrowded(run_id)


def _input_hash(request: StartRun) -> str:
    if not _has_input(request):
        return NO_INPUT_HASH
    try:
        return input_hash(request.input)
    except NotSerializable as error:
        raise InvalidRequest(str(error), errors=[{"field": "input", "message": str(error)}]) from None


def _has_input(request: StartRun) -> bool:
    return "input" in request.model_fields_set


def _named(context: ServerContext, namespace: str, request: StartRun) -> RunReference | None:
    if request.reference is None:
        return None
    return context.store.reference(namespace, request.workflow, request.version, request.reference.id)


def _holder(context: ServerContext, named: RunReference | None) -> Run | None:
    try:
        return context.store.load(named.namespace, named.run_id) if named is not None else None
    except NotFound:
        return None


def _asked(context: ServerContext, namespace: str, request: StartRun, run_id: RunId, digest: str) -> Start:
    values = StoredValues(context.payloads, namespace, run_id)
    options = request.options
    return Start(
        namespace=namespace,
        run_id=run_id,
        workflow=request.workflow,
        version=request.version,
        input=values.store(request.input, field="input") if _has_input(request) else None,
        input_hash=digest,
        options=RunOptions(pool=options.pool, priority=options.priority, retry=options.retry),
        delay_ms=options.delay_ms,
        reference=request.reference.id if request.reference is not None else None,
    )


def get(context: ServerContext, namespace: str, request: GetRun) -> RunView:
    """The run as it is now."""
    return view_of(context, context.store.load(namespace, request.run_id))


def wait(context: ServerContext, namespace: str, request: WaitRun) -> RunView:
    """The run at its end, or as it is when the time asked for, or the longest time that the server waits, has passed."""
    until_ms = context.clock.monotonic_ms() + min(request.timeout_ms, context.max_wait_ms)
    poll_ms = FIRST_POLL_MS
    while True:
        run = context.store.load(namespace, request.run_id)
        left_ms = int(until_ms - context.clock.monotonic_ms())
        if is_terminal(run) or left_ms <= 0:
            return view_of(context, run)
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
    return view_of(context, context.store.load(namespace, request.run_id))


def payload(context: ServerContext, namespace: str, request: GetPayload) -> PayloadContent:
    """A value that was too large for the log."""
    run = context.store.load(namespace, request.run_id)
    reference = context.payloads.get(namespace, run.id, request.sha256)
    return PayloadContent(value=parse_json(reference))
