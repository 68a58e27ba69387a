"""Registering the endpoints that runs are pushed to."""

from contextlib import suppress

from aiki_push.domain.changes import DeleteEndpoint, SaveEndpoint
from aiki_push.domain.endpoints import Endpoint, WorkflowVersionName, check_url
from aiki_push.domain.errors import InvalidRequest, NotFound, SettingsError
from aiki_push.domain.offers import decide_offer_now
from aiki_push.domain.values import TimestampMs
from aiki_push.ports.api.endpoints import DeleteEndpoint as DeleteEndpointRequest
from aiki_push.ports.api.endpoints import EndpointDeleted, EndpointList, EndpointView, GetEndpoint, ListEndpoints, PutEndpoint
from aiki_push.ports.store import Queue
from aiki_push.server.context import ServerContext

MAX_OFFERED_AT_ONCE = 1_000
"""Waiting runs of one queue that a new endpoint is offered at once; the rest when their next offer is due."""


def put(context: ServerContext, namespace: str, request: PutEndpoint) -> EndpointView:
    """The endpoint as it is registered now."""
    check_url(request.url, allow_loopback_http=context.allow_loopback_http)
    if request.secret is not None:
        _check_secret(context, request.secret)
    now = context.clock.now()
    endpoint = Endpoint(
        namespace=namespace,
        id=request.endpoint_id,
        url=request.url,
        workflows=tuple(WorkflowVersionName(name=one.name, version=one.version) for one in request.workflows),
        pools=request.pools,
        audience=request.audience,
        secret=request.secret,
        created_at=_created_at(context, namespace, request.endpoint_id) or now,
        updated_at=now,
    )
    context.store.commit(SaveEndpoint(endpoint))
    _offer_what_waits(context, endpoint)
    return _view(endpoint)


def _offer_what_waits(context: ServerContext, endpoint: Endpoint) -> None:
    """Runs that nobody served until now are due for an offer at once, not only when they would stall."""
    pools = endpoint.pools or (None,)
    for queue in (Queue(endpoint.namespace, one.name, one.version, pool) for one in endpoint.workflows for pool in pools):
        for run_id in context.store.ready_runs(queue, limit=MAX_OFFERED_AT_ONCE):
            with suppress(NotFound):
                context.change(endpoint.namespace, run_id, lambda run: decide_offer_now(run, context.clock.now()))


def _check_secret(context: ServerContext, secret: str) -> None:
    try:
        context.keys.signer(secret)
    except SettingsError as error:
        raise InvalidRequest(str(error), errors=[{"field": "secret", "message": str(error)}]) from None


def _created_at(context: ServerContext, namespace: str, endpoint_id: str) -> TimestampMs | None:
    try:
        return context.store.endpoint(namespace, endpoint_id).created_at
    except NotFound:
        return None


def get(context: ServerContext, namespace: str, request: GetEndpoint) -> EndpointView:
    """One registration."""
    return _view(context.store.endpoint(namespace, request.endpoint_id))


def list_all(context: ServerContext, namespace: str, _: ListEndpoints) -> EndpointList:
    """All registrations."""
    return EndpointList(endpoints=tuple(_view(endpoint) for endpoint in context.store.endpoints(namespace)))


def delete(context: ServerContext, namespace: str, request: DeleteEndpointRequest) -> EndpointDeleted:
    """The endpoint gets no more runs."""
    context.store.commit(DeleteEndpoint(namespace, request.endpoint_id))
    return EndpointDeleted(id=request.endpoint_id)


def _view(endpoint: Endpoint) -> EndpointView:
    return EndpointView(
        id=endpoint.id,
        url=endpoint.url,
        workflows=endpoint.workflows,
        pools=endpoint.pools,
        audience=endpoint.audience,
        signature="v1" if endpoint.secret else "v1a",
        created_at=endpoint.created_at,
        updated_at=endpoint.updated_at,
    )
