"""Connecting to a server: over HTTP, or to one in the same process."""

from aiki_push.adapters.system import SystemClock, SystemEntropy
from aiki_push.adapters.transport.embedded import EmbeddedApi
from aiki_push.adapters.transport.http_client import HttpApi
from aiki_push.domain.errors import SettingsError
from aiki_push.ports.api.operation import Api, Service
from aiki_push.sdk.client import Client as AnyClient
from aiki_push.sdk.run import ContextFactory


class Client(AnyClient):
    """A server by its `url`, or a `server` in this process, called in `namespace`.

    `timeout_ms` is how long one request may take, `retry_budget_ms` how long a request is repeated while the server cannot be reached.
    `context` makes `run.context` for executors: a function, async or not, that is called with the run's facts before each execution.
    Raises SettingsError unless exactly one of `url` and `server` is given.
    """

    def __init__(
        self,
        *,
        url: str | None = None,
        server: Service | None = None,
        namespace: str = "default",
        timeout_ms: int = 10_000,
        retry_budget_ms: int = 15_000,
        context: ContextFactory | None = None,
    ) -> None:
        clock, entropy = SystemClock(), SystemEntropy()

        def connect() -> Api:
            if server is not None:
                return EmbeddedApi(server, namespace)
            return HttpApi(url or "", clock=clock, entropy=entropy, timeout_ms=timeout_ms, retry_budget_ms=retry_budget_ms)

        if (url is None) == (server is None):
            raise SettingsError("a Client needs either the url of a server or a server in this process")
        super().__init__(connect, clock=clock, entropy=entropy, context=context)
