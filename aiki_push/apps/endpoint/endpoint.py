"""Putting an endpoint together."""

import logging
import os
import socket
from collections.abc import Sequence

from pydantic import Field

from aiki_push.adapters.signing.standard_webhooks import StandardVerifier
from aiki_push.apps.endpoint.admission import Admission
from aiki_push.apps.endpoint.asgi import AsgiDoor
from aiki_push.apps.endpoint.aws_lambda import LambdaDoor
from aiki_push.apps.endpoint.messages import Handle, PushAnswer, PushRequest
from aiki_push.apps.endpoint.push_handling import PushHandler
from aiki_push.domain.errors import SettingsError
from aiki_push.domain.values import Frozen
from aiki_push.sdk.client import Client
from aiki_push.sdk.executor import Executor, ExecutorConfig
from aiki_push.sdk.registry import Registry
from aiki_push.sdk.workflow_version import AnyWorkflowVersion

MAX_NAME_LENGTH = 128

_log = logging.getLogger(__name__)


class EndpointConfig(Frozen):
    """Times in milliseconds.

    signature_tolerance_ms: how far a push's time may be from this machine's, in either direction.
    max_inline_wait_ms: deadlines nearer than this are waited for in place, instead of parking the run.
    claim_refresh_interval_ms: how often a claim is refreshed; less than half the server's idle timeout.
    deadline_margin_ms: so long before the end of a Lambda's invocation, its run is handed back for the next one.
    """

    signature_tolerance_ms: int = Field(default=30_000, gt=0, strict=True)
    max_inline_wait_ms: int = Field(default=1_000, ge=0, strict=True)
    claim_refresh_interval_ms: int = Field(default=30_000, gt=0, strict=True)
    deadline_margin_ms: int = Field(default=5_000, ge=0, strict=True)


class Endpoint:
    """An executor that runs are pushed to. `lambda_handler` is its AWS Lambda handler, `asgi` its ASGI app."""

    def __init__(self, handle: Handle) -> None:
        self._handle = handle
        self.lambda_handler = LambdaDoor(handle)
        self.asgi = AsgiDoor(handle)

    async def handle(self, request: PushRequest) -> PushAnswer:
        """The answer to one push, once its segment has ended, however it arrived."""
        return await self._handle(request)

    def close(self) -> None:
        """Release what the Lambda handler keeps between invocations."""
        self.lambda_handler.close()


def endpoint(
    *,
    workflows: Sequence[AnyWorkflowVersion],
    client: Client,
    public_keys: Sequence[str] = (),
    hmac_secrets: Sequence[str] = (),
    audience: str | None = None,
    insecure: bool = False,
    config: EndpointConfig | None = None,
    name: str | None = None,
) -> Endpoint:
    """An endpoint that executes runs of `workflows` through `client`.

    It takes pushes that one of the server's `public_keys` (`whpk_…`, from `GET /v1/signing-keys`) or `hmac_secrets`
    (`whsec_…`, as registered for this endpoint) has signed; during a rotation it trusts the old and the new one. With an
    `audience`, only those that the server addresses to it. `insecure`, instead of any key, takes unsigned pushes: whoever
    reaches the endpoint can then make it claim runs. `name` is shown with the runs it holds; by default host and process.
    Raises SettingsError: no key, a malformed one, no workflow, or two handlers for one version.
    """
    config = config or EndpointConfig()
    keys = [*public_keys, *hmac_secrets]
    if keys and insecure:
        raise SettingsError("an endpoint with keys checks signatures; leave out either the keys or `insecure`")
    if not keys and not insecure:
        raise SettingsError(
            "an endpoint needs the server's public keys (whpk_…, see `aiki-push keys`) or an hmac secret (whsec_…); "
            "to take unsigned pushes, from anyone who reaches it, say insecure=True"
        )
    if insecure:
        _log.warning("this endpoint takes unsigned pushes from anyone who reaches it")
    registry = Registry(workflows)
    verifier = StandardVerifier(keys, config.signature_tolerance_ms) if keys else None
    executor = Executor(client, registry, config=_executor_config(config), name=name or _process_name())
    handler = PushHandler(
        Admission(verifier, audience, registry, client.clock), executor.execute, deadline_margin_ms=config.deadline_margin_ms
    )
    return Endpoint(handler.handle)


def _executor_config(config: EndpointConfig) -> ExecutorConfig:
    return ExecutorConfig(
        claim_refresh_interval_ms=config.claim_refresh_interval_ms, max_inline_wait_ms=config.max_inline_wait_ms
    )


def _process_name() -> str:
    return f"{socket.gethostname()}:{os.getpid()}"[-MAX_NAME_LENGTH:]
