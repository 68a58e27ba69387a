"""Where runs are pushed to."""

import ipaddress
from collections.abc import Sequence
from typing import Literal
from urllib.parse import SplitResult, urlsplit

from pydantic import Field

from aiki_push.domain.errors import InvalidRequest
from aiki_push.domain.values import Name, Stored, TimestampMs


class WorkflowVersionName(Stored):
    """A workflow and one of its versions."""

    name: Name
    version: Name


class Endpoint(Stored):
    """A registered endpoint. It gets runs of the `workflows` it lists, in its `pools`; without pools, runs without a pool.

    `secret` (`whsec_…`) signs its pushes by HMAC; without one they are signed by the server's Ed25519 keys.
    """

    v: Literal[1] = 1
    namespace: str
    id: Name
    url: str
    workflows: tuple[WorkflowVersionName, ...]
    pools: tuple[Name, ...] = ()
    audience: str | None = None
    secret: str | None = Field(default=None, repr=False)
    created_at: TimestampMs
    updated_at: TimestampMs

    def serves(self, workflow: str, version: str, pool: str | None) -> bool:
        """Whether a run of this workflow, version and pool may be pushed here."""
        listed = any(one.name == workflow and one.version == version for one in self.workflows)
        return listed and (pool in self.pools if pool is not None else not self.pools)


def serving(endpoints: Sequence[Endpoint], workflow: str, version: str, pool: str | None) -> tuple[Endpoint, ...]:
    """Those of `endpoints` that serve such a run, in the order given."""
    return tuple(endpoint for endpoint in endpoints if endpoint.serves(workflow, version, pool))


def check_url(url: str, *, allow_loopback_http: bool) -> None:
    """Raises InvalidRequest, naming `url`, unless it is https with a host, or http to this machine where that is allowed."""
    fault = _url_fault(url, allow_loopback_http=allow_loopback_http)
    if fault:
        raise InvalidRequest(f"the endpoint's url {fault}", errors=[{"field": "url", "message": fault}])


def _url_fault(url: str, *, allow_loopback_http: bool) -> str | None:
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError:
        return "cannot be parsed"
    if not host or not url.isascii() or not url.isprintable() or " " in url:
        return "needs a host and plain ASCII without spaces"
    if parts.username is not None or parts.password is not None or parts.fragment:
        return "must not carry credentials or a fragment"
    return _scheme_fault(parts, host, allow_loopback_http=allow_loopback_http)


def _scheme_fault(parts: SplitResult, host: str, *, allow_loopback_http: bool) -> str | None:
    if parts.scheme == "https":
        return None
    if parts.scheme == "http" and allow_loopback_http:
        return None if is_loopback(host) else "may be http only to a loopback address such as 127.0.0.1; use https"
    return "must begin with https://"


def is_loopback(host: str) -> bool:
    """Whether `host` is this machine: `localhost`, 127.0.0.0/8 or ::1."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
