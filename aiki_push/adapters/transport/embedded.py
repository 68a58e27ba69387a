"""The API within the server's own process, without HTTP."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from aiki_push.ports.api.operation import Operation, Service
from aiki_push.ports.api.runs import WaitRun

R = TypeVar("R")


class EmbeddedApi:
    """An Api that calls `service` within `namespace`, each call in one of `threads` threads.

    WaitRun has `waiting_threads` of its own, so that no number of waiters holds up anything else; more than these take turns.
    With `inline` calls run on the event loop itself, for a store in memory, which never waits; WaitRun keeps its threads.
    Operations are copied on their way, so the server does not see what its caller later does to a list or dict. Answers pass as they
    are: the server makes each anew. What a service raises passes too; nothing is retried here.
    """

    def __init__(
        self, service: Service, namespace: str, *, threads: int = 16, waiting_threads: int = 64, inline: bool = False
    ) -> None:
        self._service = service
        self._namespace = namespace
        self._threads = None if inline else ThreadPoolExecutor(threads, thread_name_prefix="aiki-call")
        self._waiting = ThreadPoolExecutor(waiting_threads, thread_name_prefix="aiki-wait")
        self._is_closed = False

    async def call(self, operation: Operation[R]) -> R:
        """Perform `operation`. Whoever stops awaiting it does not stop it. Raises the ApiError that the service raised."""
        if self._is_closed:
            raise RuntimeError("this EmbeddedApi is closed")
        threads = self._threads_for(operation)
        if threads is None:
            await asyncio.sleep(0)  # a caller that asks again and again must let others run, as it would over HTTP
            return self._perform(operation)
        return await asyncio.get_running_loop().run_in_executor(threads, self._perform, operation)

    async def close(self) -> None:
        """Refuse later calls and drop those not begun. The others end in their own time; only the process waits for them."""
        self._is_closed = True
        for threads in (self._threads, self._waiting):
            if threads is not None:
                threads.shutdown(wait=False, cancel_futures=True)

    def _threads_for(self, operation: Operation[Any]) -> ThreadPoolExecutor | None:
        return self._waiting if isinstance(operation, WaitRun) else self._threads

    def _perform(self, operation: Operation[R]) -> R:
        # Only what was set: no input at all is not the same as null.
        copied = type(operation).model_validate(operation.model_dump(include=operation.model_fields_set))
        return self._service.call(self._namespace, copied)
