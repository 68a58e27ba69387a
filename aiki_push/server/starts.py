"""Starting runs: each once, however often it is asked for."""

from aiki_push.domain.canonical_json import NO_INPUT_HASH, input_hash
from aiki_push.domain.errors import InvalidRequest, NotFound, NotSerializable, ReferenceConflict
from aiki_push.domain.ids import ulid
from aiki_push.domain.run import Run, RunOptions, RunReference
from aiki_push.domain.starts import Start, check_holder, decide_start, is_same_start
from aiki_push.domain.values import RunId
from aiki_push.ports.api.runs import RunView, StartRun
from aiki_push.ports.store import CommitRefused
from aiki_push.server.context import MAX_ROUNDS, ServerContext, overcrowded
from aiki_push.server.run_views import view_of
from aiki_push.server.stored_values import StoredValues


def start(context: ServerContext, namespace: str, request: StartRun) -> RunView:
    """Create the run; the same request again, or one with the same reference and input, answers the run that the first one made."""
    run_id = request.run_id or RunId(ulid(context.clock.now(), context.entropy.token(10)))
    for attempt in range(MAX_ROUNDS):
        named = named_by(context, namespace, request)
        holder = _holder(context, named)
        if holder is not None and request.reference is not None:
            return view_of(context, check_holder(holder, hash_of_input(request), request.reference.conflict_policy))
        asked = asked_start(context, namespace, request, run_id)
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


def hash_of_input(request: StartRun) -> str:
    """What the input is known by. Raises InvalidRequest for what is no plain JSON."""
    if not _has_input(request):
        return NO_INPUT_HASH
    try:
        return input_hash(request.input)
    except NotSerializable as error:
        raise InvalidRequest(str(error), errors=[{"field": "input", "message": str(error)}]) from None


def _has_input(request: StartRun) -> bool:
    return "input" in request.model_fields_set


def named_by(context: ServerContext, namespace: str, request: StartRun) -> RunReference | None:
    """What the request's reference names already; the run may be gone."""
    if request.reference is None:
        return None
    return context.store.reference(namespace, request.workflow, request.version, request.reference.id)


def _holder(context: ServerContext, named: RunReference | None) -> Run | None:
    try:
        return context.store.load(named.namespace, named.run_id) if named is not None else None
    except NotFound:
        return None


def asked_start(context: ServerContext, namespace: str, request: StartRun, run_id: RunId) -> Start:
    """The run that `request` asks for, its input stored. Raises InvalidRequest, PayloadTooLarge."""
    digest = hash_of_input(request)  # refuses what is no JSON before anything is stored
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
