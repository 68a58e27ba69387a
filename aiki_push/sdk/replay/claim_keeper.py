"""Keeping the claim alive while the workflow executes, and hearing what happens to the run meanwhile."""

import asyncio
import logging
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable

from aiki_push.domain.errors import AikiError, InvalidToken, NotFound, RevisionConflict
from aiki_push.ports.api.claims import Claimed, GetInbox, Inbox, RefreshClaim
from aiki_push.ports.api.operation import Api
from aiki_push.ports.clock import Clock

NEWS_INTERVAL_S = 1.0
"""How often the server is asked for messages and directives; a segment shorter than this never asks."""

_log = logging.getLogger(__name__)


class ClaimKeeper(ABC):
    """Refreshes one claim, and asks for news, beside the workflow: where and when is up to the subclass.

    `on_lost` is called once, from there, when the server says that the run moved on; `on_news` when it has something to say.
    """

    def __init__(
        self,
        connect: Callable[[], Api],
        claimed: Claimed,
        *,
        interval_ms: int,
        clock: Clock,
        on_lost: Callable[[], None],
        on_news: Callable[[Inbox], None],
    ) -> None:
        self.connect = connect
        self.interval_s = interval_ms / 1_000
        self.stopped = threading.Event()
        self._claimed = claimed
        self._clock = clock
        self._on_lost = on_lost
        self._on_news = on_news
        self._heard_ms = clock.monotonic_ms()
        self._seen_seq = claimed.messages[-1].seq if claimed.messages else 0

    @abstractmethod
    def start(self) -> None:
        """Begin to `refresh` every `interval_s`, and to `ask` every NEWS_INTERVAL_S; the first time after one of these."""

    def stop(self) -> None:
        """Stop. Does not wait for a request in flight: it can harm nothing."""
        self.stopped.set()

    def is_alive(self) -> bool:
        """Whether the server can still think that the claim is ours: it heard of us within its idle timeout."""
        return self._clock.monotonic_ms() - self._heard_ms < self._claimed.claim_idle_timeout_ms

    async def refresh(self, api: Api) -> bool:
        """Refresh once; False once the claim is lost."""
        asked_ms = self._clock.monotonic_ms()
        try:
            await api.call(RefreshClaim(run_id=self._claimed.run.id, token=self._claimed.token))
            self._heard_ms = asked_ms
        except (RevisionConflict, InvalidToken, NotFound) as error:
            return self._lose(str(error))
        except AikiError as error:
            run_id = self._claimed.run.id
            _log.warning("the claim on run %s could not be refreshed: %s", run_id, error, extra={"aiki.run_id": run_id})
        return True

    async def ask(self, api: Api) -> bool:
        """Ask once for news; False once the claim is lost."""
        run = self._claimed.run
        try:
            inbox = await api.call(GetInbox(run_id=run.id, after=self._seen_seq))
        except NotFound as error:
            return self._lose(str(error))
        except AikiError as error:
            _log.info("run %s could not be asked for news: %s", run.id, error, extra={"aiki.run_id": run.id})
            return True
        if inbox.revision != run.revision:
            return self._lose(f"it is {inbox.status} at revision {inbox.revision}, and was claimed at {run.revision}")
        if inbox.messages or inbox.directive is not None:
            self._seen_seq = inbox.messages[-1].seq if inbox.messages else self._seen_seq
            self._on_news(inbox)
        return True

    def _lose(self, why: str) -> bool:
        if not self.stopped.is_set():
            run_id = self._claimed.run.id
            _log.info("the claim on run %s is lost: %s", run_id, why, extra={"aiki.run_id": run_id})
            self._on_lost()
        return False


class ThreadKeeper(ClaimKeeper):
    """Works in a thread with a connection of its own: a handler that blocks everything else cannot silence it."""

    def start(self) -> None:
        """See ClaimKeeper."""
        threading.Thread(target=self._keep, name=f"claim of {self._claimed.run.id}", daemon=True).start()

    def _keep(self) -> None:
        step_s = min(self.interval_s, NEWS_INTERVAL_S)
        if self.stopped.wait(step_s):
            return  # most segments are shorter than that, and never make a connection
        api = self.connect()
        with asyncio.Runner() as runner:
            time = runner.get_loop().time  # that of the machine: a slow server must not put off the next refresh
            refreshed_at, is_held = time() - step_s, True
            try:
                while is_held:
                    if time() - refreshed_at >= self.interval_s:
                        refreshed_at = time()
                        is_held = runner.run(self.refresh(api))
                    # Also after a refresh: where claims are refreshed every second or more often, there would be no other time.
                    is_held = is_held and runner.run(self.ask(api)) and not self.stopped.wait(step_s)
            finally:
                runner.run(api.close())
