"""Listing runs: page by page, the newest first."""

from collections.abc import Iterator

from aiki_push.domain.canonical_json import compact_json
from aiki_push.domain.errors import InvalidRequest, NotFound
from aiki_push.domain.run import Run
from aiki_push.domain.values import Json, RunId, TimestampMs
from aiki_push.ports.api.runs import ListRuns, RunList
from aiki_push.ports.store import ListedRun, Listing, ListPlace
from aiki_push.server.context import ServerContext
from aiki_push.server.run_views import summary_of

MAX_READS = 10
"""How often a page reads as many entries of the index as it may hold runs, before it ends short."""

_CURSOR = "runs"


def list_runs(context: ServerContext, namespace: str, request: ListRuns) -> RunList:
    """A page of the runs that match, and where the next one begins."""
    place = None if request.cursor is None else _opened(context, namespace, request, request.cursor)
    if request.reference is not None:
        return RunList(runs=tuple(map(summary_of, _by_reference(context, namespace, request))))
    found: list[Run] = []
    for _ in range(MAX_READS):
        listing = Listing(namespace, request.workflow, request.status)
        entries = context.store.newest_runs(listing, before=place, limit=request.limit)
        for place, run in _looked_at(context, namespace, request, entries):
            if run is not None:
                found.append(run)
            if len(found) == request.limit:
                return _page(found, _sealed(context, namespace, request, place))
        if len(entries) < request.limit:
            return _page(found, None)
    return _page(found, None if place is None else _sealed(context, namespace, request, place))


def _page(found: list[Run], cursor: str | None) -> RunList:
    return RunList(runs=tuple(map(summary_of, found)), next_cursor=cursor)


def _looked_at(
    context: ServerContext, namespace: str, request: ListRuns, entries: tuple[ListedRun, ...]
) -> Iterator[tuple[ListPlace, Run | None]]:
    """The place of every entry, with its run where that matches. What the index knows already saves reading the header."""
    wanted = [entry.place.run_id for entry in entries if request.version in (None, entry.version)]
    runs = {run.id: run for run in context.store.load_many(namespace, wanted)}
    for entry in entries:
        run = runs.get(entry.place.run_id)
        yield entry.place, run if run is not None and _matches(run, request) else None


def _matches(run: Run, request: ListRuns) -> bool:
    asked = ((request.workflow, run.workflow), (request.version, run.version), (request.status, run.state.status))
    return all(wanted in (None, found) for wanted, found in asked)


def _by_reference(context: ServerContext, namespace: str, request: ListRuns) -> Iterator[Run]:
    if request.workflow is None or request.version is None or request.reference is None:
        message = "needs workflow and version: a reference is one of a kind within a version only"
        raise InvalidRequest(f"reference {message}", errors=[{"field": "reference", "message": message}])
    named = context.store.reference(namespace, request.workflow, request.version, request.reference)
    if named is None:
        return
    try:
        run = context.store.load(namespace, named.run_id)
    except NotFound:
        return
    if _matches(run, request):
        yield run


def _subject(namespace: str, request: ListRuns) -> str:
    """What a cursor is good for: the same filters in the same namespace."""
    filters: list[Json] = [namespace, request.workflow, request.version, request.status, request.reference]
    return compact_json(filters)


def _sealed(context: ServerContext, namespace: str, request: ListRuns, place: ListPlace) -> str:
    return context.seals.seal(_CURSOR, _subject(namespace, request), [place.created_at, place.run_id])


def _opened(context: ServerContext, namespace: str, request: ListRuns, cursor: str) -> ListPlace:
    match context.seals.open(_CURSOR, _subject(namespace, request), cursor):
        case [int(created_at), str(run_id)]:
            return ListPlace(TimestampMs(created_at), RunId(run_id))
        case _:
            message = "was not made by this server for a list with these filters; leave it out to begin with the newest"
            raise InvalidRequest(f"the cursor {message}", errors=[{"field": "cursor", "message": message}])
