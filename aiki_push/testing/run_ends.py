"""Being told of the ends of runs, instead of asking again and again: days may pass between two questions."""

import asyncio
from collections import defaultdict
from collections.abc import Callable
from typing import TypeVar, cast

from aiki_push.adapters.storage.store import SingleTableStore
from aiki_push.adapters.storage.table import Table
from aiki_push.domain.changes import Change, CreateRun, SaveRun
from aiki_push.domain.run_states import TERMINAL
from aiki_push.ports.api.operation import Api, Operation
from aiki_push.ports.api.runs import GetRun, WaitRun
from aiki_push.ports.clock import Clock
from aiki_push.ports.entropy import Entropy

R = TypeVar("R")


class RunEnds:
    """Wakes those who wait for the end of a run. Belongs to one event loop and its thread."""

    def __init__(self) -> None:
        self._waiting: defaultdict[str, list[asyncio.Future[None]]] = defaultdict(list)

    def tell(self, run_id: str) -> None:
        """The run has ended, or may have: whoever waits looks again."""
        for waiting in self._waiting.pop(run_id, ()):
            if not waiting.done():
                waiting.set_result(None)

    def next(self, run_id: str) -> asyncio.Future[None]:
        """Done at the next `tell` of this run."""
        waiting: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting[run_id].append(waiting)
        return waiting


class TellingStore(SingleTableStore):
    """A store that calls `on_end` with the id of every run that a commit ends, also where the commit's answer is lost."""

    def __init__(self, table: Table, clock: Clock, entropy: Entropy, on_end: Callable[[str], None]) -> None:
        super().__init__(table, clock, entropy)
        self._on_end = on_end

    def commit(self, *changes: Change) -> None:
        """See Store."""
        try:
            super().commit(*changes)
        finally:
            for change in changes:
                if isinstance(change, CreateRun | SaveRun) and change.run.state.status in TERMINAL:
                    self._on_end(change.run.id)


class HoldingApi:
    """The API `api`, but WaitRun is held until the run has ended, whatever its timeout: the caller has its own."""

    def __init__(self, api: Api, ends: RunEnds) -> None:
        self._api = api
        self._ends = ends

    async def call(self, operation: Operation[R]) -> R:
        """See Api."""
        if not isinstance(operation, WaitRun):
            return await self._api.call(operation)
        while (view := await self._api.call(GetRun(run_id=operation.run_id))).state.status not in TERMINAL:
            await self._ends.next(operation.run_id)
        return cast(R, view)

    async def close(self) -> None:
        """See Api."""
        await self._api.close()
