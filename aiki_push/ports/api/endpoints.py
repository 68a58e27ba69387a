"""Registering the endpoints that runs are pushed to."""

from typing import Annotated

from pydantic import Field, StringConstraints, TypeAdapter

from aiki_push.domain.endpoints import WorkflowVersionName
from aiki_push.domain.values import NAME_PATTERN, Frozen, Name, TimestampMs
from aiki_push.ports.api.operation import Answer, Operation

EndpointId = Annotated[str, StringConstraints(pattern=NAME_PATTERN)]


class WorkflowVersionField(Frozen):
    """A workflow and one of its versions."""

    name: Name
    version: Name


class EndpointView(Answer):
    """An endpoint as administrators see it; its secret is never shown."""

    id: str
    url: str
    workflows: tuple[WorkflowVersionName, ...]
    pools: tuple[str, ...]
    audience: str | None = None
    signature: str
    created_at: TimestampMs
    updated_at: TimestampMs


class PutEndpoint(Operation[EndpointView]):
    """Register an endpoint, or replace its registration.

    `url` is https; plain http only to loopback addresses, where the server allows it. Runs of the `workflows` listed are pushed to it,
    in its `pools` (none: runs without a pool). With `secret` (`whsec_…`) its pushes are signed by HMAC (`v1`), without by the server's
    keys (`v1a`).
    Raises InvalidRequest.
    """

    operation, method, path, role = "put_endpoint", "PUT", "/v1/endpoints/{endpoint_id}", "admin"
    answer = TypeAdapter[EndpointView](EndpointView)

    endpoint_id: EndpointId
    url: Annotated[str, Field(min_length=8, max_length=2048)]
    workflows: Annotated[tuple[WorkflowVersionField, ...], Field(min_length=1, max_length=100)]
    pools: Annotated[tuple[Name, ...], Field(max_length=20)] = ()
    audience: Annotated[str, Field(min_length=1, max_length=256)] | None = None
    secret: str | None = Field(default=None, max_length=256, repr=False)


class GetEndpoint(Operation[EndpointView]):
    """Read an endpoint's registration. Raises NotFound."""

    operation, method, path, role = "get_endpoint", "GET", "/v1/endpoints/{endpoint_id}", "admin"
    answer = TypeAdapter[EndpointView](EndpointView)

    endpoint_id: EndpointId


class EndpointList(Answer):
    """All endpoints of the namespace, by id."""

    endpoints: tuple[EndpointView, ...]


class ListEndpoints(Operation[EndpointList]):
    """Read all registrations."""

    operation, method, path, role = "list_endpoints", "GET", "/v1/endpoints", "admin"
    answer = TypeAdapter[EndpointList](EndpointList)


class EndpointDeleted(Answer):
    """The endpoint is no longer registered, whether it was before or not."""

    id: str


class DeleteEndpoint(Operation[EndpointDeleted]):
    """Remove a registration. Runs that only this endpoint served stay queued."""

    operation, method, path, role = "delete_endpoint", "DELETE", "/v1/endpoints/{endpoint_id}", "admin"
    answer = TypeAdapter[EndpointDeleted](EndpointDeleted)

    endpoint_id: EndpointId
