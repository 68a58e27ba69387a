"""What comes next, and when: the timers of the event loop, and the runs that will need the server's attention."""

from aiki_push.domain.run_states import Running
from aiki_push.domain.values import TimestampMs
from aiki_push.ports.store import DueRun
from aiki_push.testing.local_system import LocalSystem

FOREVER = TimestampMs(10**15 - 1)
"""The latest time that the index of due runs holds."""

LOOK_AGAIN_MS = 1_000
"""After the table did not answer."""


class Agenda:
    """Finds due runs in the table of `system`, so no hint is needed and none is lost.

    An executor keeps its claim for as long as it has one, and that alone is nothing that happens. Once nothing else has happened for
    `longest_quiet_ms`, time jumps over it.
    """

    def __init__(self, system: LocalSystem, *, longest_quiet_ms: int) -> None:
        self._system = system
        self._longest_quiet_ms = longest_quiet_ms
        self._quiet_ms = 0
        self._put_off: dict[str, int] = {}

    def earliest(self) -> tuple[int | None, DueRun | None]:
        """In how many milliseconds a run needs attention, 0 where it does now, and which. Raises StorageUnavailable."""
        now = self._system.clock.now()
        due = self._system.store.due_runs(until=FOREVER, limit=1 + len(self._put_off))
        left = [(max(0, one.due_at - now, self._put_off.get(one.run_id, 0) - now), one) for one in due]
        return min(left, key=lambda one: one[0], default=(None, None))

    def advance(self, due: DueRun) -> None:
        """Give the run what it needs. Where that fails it does not hold up the others."""
        self._put_off.pop(due.run_id, None)
        if not self._system.attention.advance_safely(due.namespace, due.run_id):
            self._put_off[due.run_id] = self._system.clock.now() + LOOK_AGAIN_MS

    def note_end(self) -> None:
        """An execution has ended, and may have left a claim that goes stale."""
        self._quiet_ms = 0

    def next_ms(self, *, due_ms: int | None, timer_ms: int | None, foreground_ms: int | None, claims: int) -> int | None:
        """In how many milliseconds something happens, None where nothing ever will.

        `due_ms` is that of `earliest`, `timer_ms` that of the next timer, `foreground_ms` that of the next one which is not in the
        background. `claims` runs are being executed.
        """
        step_ms = _earlier(due_ms, timer_ms)
        if step_ms is None:
            return None
        self._quiet_ms = 0 if foreground_ms is not None and foreground_ms <= step_ms else self._quiet_ms + step_ms
        if self._quiet_ms <= self._longest_quiet_ms:
            return step_ms
        self._quiet_ms = 0
        return _earlier(foreground_ms, self._unclaimed_ms(claims))

    def _unclaimed_ms(self, claims: int) -> int | None:
        """When the first run is due that is not being executed. (Those that are would be due if their executors died.)"""
        now = self._system.clock.now()
        due = self._system.store.due_runs(until=FOREVER, limit=claims + 1)
        left = (max(0, one.due_at - now) for one in due if not isinstance(self._system.run(one.run_id).state, Running))
        return next(left, None)


def _earlier(*left_ms: int | None) -> int | None:
    return min((ms for ms in left_ms if ms is not None), default=None)
