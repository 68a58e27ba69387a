"""Keeping claims alive in virtual time."""

import asyncio

from aiki_push.sdk.replay.claim_keeper import NEWS_INTERVAL_S, ClaimKeeper
from aiki_push.testing.virtual_time import background


class LoopKeeper(ClaimKeeper):
    """Works in a task of the running event loop, in the background: a claim that is kept is nothing that happens."""

    _task: asyncio.Task[None]

    def start(self) -> None:
        """See ClaimKeeper."""
        self._task = asyncio.get_running_loop().create_task(self._keep(), name="a claim keeper", context=background())
        self._task.add_done_callback(_surface)

    def stop(self) -> None:
        """See ClaimKeeper."""
        super().stop()
        self._task.cancel()

    async def _keep(self) -> None:
        api, time = self.connect(), asyncio.get_running_loop().time
        refreshed_at, is_held = time(), True
        try:
            while is_held:
                await asyncio.sleep(min(self.interval_s, NEWS_INTERVAL_S))
                if time() - refreshed_at >= self.interval_s:
                    refreshed_at = time()
                    is_held = await self.refresh(api)
                is_held = is_held and await self.ask(api)
        finally:
            await api.close()


def _surface(task: asyncio.Task[None]) -> None:
    """Have what the task raised by mistake go to the event loop's handler of exceptions."""
    if not task.cancelled():
        task.result()
