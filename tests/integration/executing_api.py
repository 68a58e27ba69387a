"""A server with executors beside it: what is started is executed at once."""

import asyncio
from collections.abc import Sequence
from typing import Any, TypeVar, cast

from aiki_push import Client
from aiki_push.adapters.system import SystemClock, SystemEntropy
from aiki_push.domain.run_states import Queued
from aiki_push.ports.api.operation import Operation
from aiki_push.ports.api.runs import RunView
from aiki_push.sdk.client import Client as AnyClient
from aiki_push.sdk.workflow_version import AnyWorkflowVersion
from tests.local_system import LocalSystem

R = TypeVar("R")


class ExecutingApi:
    """The API of `system`; a run that an answer shows as queued is executed on the event loop of whoever asked."""

    def __init__(self, system: LocalSystem, versions: Sequence[AnyWorkflowVersion]) -> None:
        self._api = system.api()
        self._executor = system.executor(*versions)
        self._executing: dict[str, asyncio.Task[Any]] = {}

    async def call(self, operation: Operation[R]) -> R:
        answer = await self._api.call(operation)
        if isinstance(answer, RunView) and isinstance(answer.state, Queued) and answer.id not in self._executing:
            self._executing[answer.id] = asyncio.create_task(self._executor.execute(answer.id, revision=answer.revision))
        return answer

    async def close(self) -> None:
        await asyncio.gather(*self._executing.values())
        await self._api.close()


def executing_client(system: LocalSystem, *versions: AnyWorkflowVersion) -> Client:
    """A client of `system`, where every run of `versions` is executed as soon as it is started."""
    client = AnyClient(lambda: ExecutingApi(system, versions), clock=SystemClock(), entropy=SystemEntropy())
    return cast(Client, client)  # which adds only how to connect
