"""What every use case works with, and the loop that all of them share: read, decide, commit."""

import logging
from collections.abc import Callable
from dataclasses import dataclass

from aiki_push.domain.changes import Change, CreateRun, SaveRun
from aiki_push.domain.errors import StorageUnavailable
from aiki_push.domain.limits import Limits
from aiki_push.domain.run import Run
from aiki_push.domain.run_states import Stalled
from aiki_push.domain.values import DurationMs, TimestampMs
from aiki_push.ports.clock import Clock
from aiki_push.ports.entropy import Entropy
from aiki_push.ports.payloads import PayloadStore
from aiki_push.ports.signing import KeyRing
from aiki_push.ports.store import CommitRefused, Store
from aiki_push.ports.wakeups import MAX_HINT_DELAY_MS, Hint, Wakeups
from aiki_push.server.seals import Seals

_log = logging.getLogger(__name__)

MAX_ROUNDS = 50
"""How often a decision is made anew because someone else was faster. Each round somebody wins, so this is never reached in practice."""

BACK_OFF_AFTER = 5
LONGEST_BACK_OFF_MS = 50


@dataclass(frozen=True, slots=True)
class ServerContext:
    """The server's ports and settings.

    `seals` signs claim tokens and cursors; `max_wait_ms` bounds a waiting request; `keys` are those that pushes are signed with;
    `allow_loopback_http` lets endpoints on this machine be registered without TLS.
    """

    store: Store
    payloads: PayloadStore
    clock: Clock
    entropy: Entropy
    wakeups: Wakeups
    seals: Seals
    keys: KeyRing
    limits: Limits = Limits()
    max_wait_ms: DurationMs = DurationMs(20_000)
    allow_loopback_http: bool = False

    def commit(self, changes: tuple[Change, ...]) -> None:
        """Write `changes`, then send hints for the runs that they leave due soon. Raises CommitRefused.

        The table decides, so a hint that is lost costs time only.
        """
        self.store.commit(*changes)
        runs = [change.run for change in changes if isinstance(change, CreateRun | SaveRun)]
        now = self.clock.now() if runs else TimestampMs(0)
        hints = [
            Hint(namespace=run.namespace, run_id=run.id, due_at=run.due_at)
            for run in runs
            if run.due_at is not None and run.due_at - now <= MAX_HINT_DELAY_MS
        ]
        if hints:
            self.wakeups.send(*hints)
        for run in runs:
            _announce(run)

    def change(self, namespace: str, run_id: str, decide: Callable[[Run], tuple[Change, ...]]) -> None:
        """Read the run, decide, commit; decide anew where someone else was faster. No changes: nothing is written.

        Raises what `decide` raises, NotFound, StorageUnavailable.
        """
        for attempt in range(MAX_ROUNDS):
            changes = decide(self.store.load(namespace, run_id))
            if not changes:
                return
            try:
                self.commit(changes)
                return
            except CommitRefused:
                self.back_off(attempt)
        raise overcrowded(run_id)

    def back_off(self, attempt: int) -> None:
        """Wait a moment, at random, after losing more than a few races."""
        if attempt >= BACK_OFF_AFTER:
            self.clock.sleep(DurationMs(1 + int(self.entropy.fraction() * LONGEST_BACK_OFF_MS)))


def _announce(run: Run) -> None:
    if isinstance(run.state, Stalled):
        message = "run %s of %s %s is stalled (%s); `aiki-push runs show` says why"
        _log.warning(message, run.id, run.workflow, run.version, run.state.reason, extra={"aiki.run_id": run.id})


def overcrowded(run_id: str) -> StorageUnavailable:
    """The error after MAX_ROUNDS lost races."""
    return StorageUnavailable(f"run {run_id} is written by too many at once; repeat the request", run_id=run_id)
