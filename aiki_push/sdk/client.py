"""Where runs are started and executed: a server, wherever it is."""

import asyncio
import inspect
from collections.abc import Callable
from weakref import WeakKeyDictionary

from aiki_push.ports.api.operation import Api
from aiki_push.ports.clock import Clock
from aiki_push.ports.entropy import Entropy
from aiki_push.sdk.run import ContextFactory, RunInfo


class Client:
    """A server's API for any number of event loops. Make one with `aiki_push.Client(url=…)` or `aiki_push.Client(server=…)`."""

    def __init__(
        self, connect: Callable[[], Api], *, clock: Clock, entropy: Entropy, context: ContextFactory | None = None
    ) -> None:
        self._connect = connect
        self._context = context
        self._apis: WeakKeyDictionary[asyncio.AbstractEventLoop, Api] = WeakKeyDictionary()
        self.clock = clock
        self.entropy = entropy

    @property
    def api(self) -> Api:
        """The API for the running event loop; connections belong to the loop they were opened on."""
        loop = asyncio.get_running_loop()
        api = self._apis.get(loop)
        if api is None:
            api = self._apis[loop] = self._connect()
        return api

    def connect(self) -> Api:
        """An API of the caller's own, to be closed by it."""
        return self._connect()

    async def context_for(self, run: RunInfo) -> object:
        """What the context factory makes for this execution of a run; None without a factory. Raises what the factory raises."""
        made = None if self._context is None else self._context(run)
        return await made if inspect.isawaitable(made) else made

    async def close(self) -> None:
        """Release the running loop's connections."""
        api = self._apis.pop(asyncio.get_running_loop(), None)
        if api is not None:
            await api.close()
