"""Giving one run what it needs now."""

import logging

from aiki_push.domain.advances import (
    NeedsChange,
    NeedsFollowUp,
    NeedsOffer,
    NeedsRecovery,
    NotDue,
    decide_delay,
    need_of,
)
from aiki_push.domain.errors import AikiError, NotFound
from aiki_push.domain.run import Run
from aiki_push.domain.values import DurationMs
from aiki_push.ports.publisher import Publisher
from aiki_push.ports.store import CommitRefused
from aiki_push.ports.wakeups import Hint
from aiki_push.server.attention.follow_up import follow_up
from aiki_push.server.attention.offer import offer
from aiki_push.server.attention.recover import recover
from aiki_push.server.context import MAX_ROUNDS, ServerContext

SHORT_WAIT_MS = 1_000
"""A hint that comes early by no more than this is waited for: SQS counts in whole seconds, children's ends are gathered for less."""

_log = logging.getLogger(__name__)


class Attention:
    """Advances runs. Stateless but for its ports; any number of these may work on the same runs at once."""

    def __init__(self, context: ServerContext, publisher: Publisher) -> None:
        self._context = context
        self._publisher = publisher

    def handle(self, hint: Hint) -> None:
        """Do what a hint is about. Early, late, doubled and wrong hints do no harm; one that is early by more is sent again."""
        early_ms = hint.due_at - self._context.clock.now()
        if early_ms > SHORT_WAIT_MS:
            self._context.wakeups.send(hint)
            return
        if early_ms > 0:
            self._context.clock.sleep(DurationMs(early_ms))
        self.advance(hint.namespace, hint.run_id)

    def advance(self, namespace: str, run_id: str) -> None:
        """Give the run what it needs now; nothing where it needs nothing. Whoever made it due later has sent a hint for that.

        Raises StorageUnavailable, and what a damaged run raises: `advance_safely` is for whoever has others to look after.
        """
        for attempt in range(MAX_ROUNDS):
            try:
                run = self._context.store.load(namespace, run_id)
            except NotFound:
                return
            need = need_of(run, self._context.clock.now(), self._context.limits)
            if not isinstance(need, NeedsChange):
                self._look_after(run, need)
                return
            try:
                self._context.commit(need.changes)
                return
            except CommitRefused:
                self._context.back_off(attempt)

    def _look_after(self, run: Run, need: NotDue | NeedsOffer | NeedsRecovery | NeedsFollowUp) -> None:
        match need:
            case NotDue():
                return
            case NeedsRecovery():
                recover(self._context, run)
            case NeedsOffer():
                offer(self._context, self._publisher, run)
            case NeedsFollowUp():
                follow_up(self._context, run)

    def advance_safely(self, namespace: str, run_id: str) -> bool:
        """Advance one run of many; False where that failed. The run is then looked at later, so it never blocks the others."""
        try:
            self.advance(namespace, run_id)
        except AikiError:
            _log.exception("run %s could not be advanced; it is tried again later", run_id, extra={"aiki.run_id": run_id})
            self._delay(namespace, run_id)
            return False
        return True

    def _delay(self, namespace: str, run_id: str) -> None:
        try:
            self._context.change(namespace, run_id, lambda run: decide_delay(run, self._context.clock.now()))
        except AikiError:
            _log.exception("run %s could not be put off", run_id, extra={"aiki.run_id": run_id})
