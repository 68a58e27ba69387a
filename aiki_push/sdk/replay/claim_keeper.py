"""Keeping the claim alive while the workflow executes."""

import asyncio
import logging
import threading
from collections.abc import Callable

from aiki_push.domain.errors import AikiError, InvalidToken, NotFound, RevisionConflict
from aiki_push.ports.api.claims import Claimed, RefreshClaim
from aiki_push.ports.api.operation import Api
from aiki_push.ports.clock import Clock

_log = logging.getLogger(__name__)


class ClaimKeeper:
    """A thread with a connection of its own that refreshes one claim, so that a handler which blocks everything else cannot silence it.

    `on_lost` is called once, from that thread, when the server says that the run moved on.
    """

    def __init__(
        self, connect: Callable[[], Api], claimed: Claimed, *, interval_ms: int, clock: Clock, on_lost: Callable[[], None]
    ) -> None:
        self._connect = connect
        self._claimed = claimed
        self._interval_ms = interval_ms
        self._clock = clock
        self._on_lost = on_lost
        self._stopped = threading.Event()
        self._heard_ms = clock.monotonic_ms()
        self._thread = threading.Thread(target=self._keep, name=f"claim of {claimed.run.id}", daemon=True)

    def start(self) -> None:
        """Begin to refresh; the first time after one interval."""
        self._thread.start()

    def stop(self) -> None:
        """Stop refreshing. Does not wait for a refresh in flight: it can harm nothing."""
        self._stopped.set()

    def is_alive(self) -> bool:
        """Whether the server can still think that the claim is ours: it heard of us within its idle timeout."""
        return self._clock.monotonic_ms() - self._heard_ms < self._claimed.claim_idle_timeout_ms

    def _keep(self) -> None:
        if self._stopped.wait(self._interval_ms / 1_000):
            return
        api = self._connect()
        with asyncio.Runner() as runner:
            try:
                while self._refresh(runner, api) and not self._stopped.wait(self._interval_ms / 1_000):
                    pass
            finally:
                runner.run(api.close())

    def _refresh(self, runner: asyncio.Runner, api: Api) -> bool:
        """False once the claim is lost."""
        run_id = self._claimed.run.id
        asked_ms = self._clock.monotonic_ms()
        try:
            runner.run(api.call(RefreshClaim(run_id=run_id, token=self._claimed.token)))
            self._heard_ms = asked_ms
        except (RevisionConflict, InvalidToken, NotFound) as error:
            if not self._stopped.is_set():
                _log.info("the claim on run %s is lost: %s", run_id, error, extra={"aiki.run_id": run_id})
                self._on_lost()
            return False
        except AikiError as error:
            _log.warning("the claim on run %s could not be refreshed: %s", run_id, error, extra={"aiki.run_id": run_id})
        return True
