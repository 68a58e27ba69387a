"""An API on a bad line."""

from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from aiki_push.ports.api.operation import Api, Operation

R = TypeVar("R")


async def _nothing(_: Operation[Any]) -> None:
    return None


class FaultyApi:
    """An Api with hooks that tests set, and a list of what was `called`; a hook that raises makes the call fail there.

    `before` fails or delays a request that does not reach the server, `after` one that did and whose answer is lost.
    """

    def __init__(self, api: Api) -> None:
        self._api = api
        self.called: list[Operation[Any]] = []
        self.before: Callable[[Operation[Any]], Awaitable[None]] = _nothing
        self.after: Callable[[Operation[Any]], Awaitable[None]] = _nothing

    async def call(self, operation: Operation[R]) -> R:
        """See Api."""
        self.called.append(operation)
        await self.before(operation)
        answer = await self._api.call(operation)
        await self.after(operation)
        return answer

    async def close(self) -> None:
        """See Api."""
        await self._api.close()
