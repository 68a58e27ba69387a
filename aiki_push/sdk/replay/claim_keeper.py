"""Keeping the claim alive while the workflow executes."""

import asyncio
import logging
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable

from aiki_push.domain.errors import AikiError, InvalidToken, NotFound, RevisionConflict
from aiki_push.ports.api.claims import Claimed, RefreshClaim
from aiki_push.ports.api.operation import Api
from aiki_push.ports.clock import Clock

_log = logging.getLogger(__name__)


class ClaimKeeper(ABC):
    """Refreshes one claim, beside the workflow: where and when is up to the subclass.

    `on_lost` is called once, from there, when the server says that the run moved on.
    """

    def __init__(
        self, connect: Callable[[], Api], claimed: Claimed, *, interval_ms: int, clock: Clock, on_lost: Callable[[], None]
    ) -> None:
        self.connect = connect
        self.interval_s = interval_ms / 1_000
        self.stopped = threading.Event()
        self._claimed = claimed
        self._clock = clock
        self._on_lost = on_lost
        self._heard_ms = clock.monotonic_ms()

    @abstractmethod
    def start(self) -> None:
        """Begin to refresh, every `interval_s`; the first time after one of these."""

    def stop(self) -> None:
        """Stop refreshing. Does not wait for a refresh in flight: it can harm nothing."""
        self.stopped.set()

    def is_alive(self) -> bool:
        """Whether the server can still think that the claim is ours: it heard of us within its idle timeout."""
        return self._clock.monotonic_ms() - self._heard_ms < self._claimed.claim_idle_timeout_ms

    async def refresh(self, api: Api) -> bool:
        """Refresh once; False once the claim is lost."""
        run_id = self._claimed.run.id
        asked_ms = self._clock.monotonic_ms()
        try:
            await api.call(RefreshClaim(run_id=run_id, token=self._claimed.token))
            self._heard_ms = asked_ms
        except (RevisionConflict, InvalidToken, NotFound) as error:
            if not self.stopped.is_set():
                _log.info("the claim on run %s is lost: %s", run_id, error, extra={"aiki.run_id": run_id})
                self._on_lost()
            return False
        except AikiError as error:
            _log.warning("the claim on run %s could not be refreshed: %s", run_id, error, extra={"aiki.run_id": run_id})
        return True


class ThreadKeeper(ClaimKeeper):
    """Refreshes in a thread with a connection of its own: a handler that blocks everything else cannot silence it."""

    def start(self) -> None:
        """See ClaimKeeper."""
        threading.Thread(target=self._keep, name=f"claim of {self._claimed.run.id}", daemon=True).start()

    def _keep(self) -> None:
        if self.stopped.wait(self.interval_s):
            return
        api = self.connect()
        with asyncio.Runner() as runner:
            try:
                while runner.run(self.refresh(api)) and not self.stopped.wait(self.interval_s):
                    pass
            finally:
                runner.run(api.close())
