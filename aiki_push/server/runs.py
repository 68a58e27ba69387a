"""Reading runs, and waiting for their end."""

from aiki_push.domain.canonical_json import parse_json
from aiki_push.domain.errors import InvalidRequest
from aiki_push.domain.run_transitions import is_terminal
from aiki_push.domain.values import DurationMs
from aiki_push.ports.api.runs import (
    GetHistory,
    GetPayload,
    GetRun,
    History,
    HistoryEntry,
    PayloadContent,
    RunView,
    WaitRun,
)
from aiki_push.server.context import ServerContext
from aiki_push.server.run_views import view_of

FIRST_POLL_MS = 25
LONGEST_POLL_MS = 500
HISTORY_PAGE_BYTES = 512 * 1024
_CURSOR = "history"


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


def payload(context: ServerContext, namespace: str, request: GetPayload) -> PayloadContent:
    """A value that was too large for the log."""
    run = context.store.load(namespace, request.run_id)
    reference = context.payloads.get(namespace, run.id, request.sha256)
    return PayloadContent(value=parse_json(reference))
