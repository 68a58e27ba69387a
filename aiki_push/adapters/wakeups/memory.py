"""Hints within this process, to the millisecond: for the local server and for tests."""

import logging
import traceback
from collections.abc import Callable
from heapq import heappop, heappush
from threading import Condition, Thread
from typing import TypeAlias

from aiki_push.domain.values import RunId, TimestampMs
from aiki_push.ports.clock import Clock
from aiki_push.ports.wakeups import MAX_HINT_DELAY_MS, Hint

_Entry: TypeAlias = tuple[TimestampMs, str, RunId]

THREAD_NAME = "aiki-wakeups"

_log = logging.getLogger(__name__)


class MemoryWakeups:
    """Keeps hints until they are due. Threads hand them on once `start` was called; `take` is for whoever has no threads.

    A hint that is the same as one still waiting is dropped. What waits when the process ends is lost, as hints may be.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._changed = Condition()
        self._heap: list[_Entry] = []
        self._waiting: set[_Entry] = set()
        self._threads: list[Thread] = []
        self._is_stopping = False

    def send(self, *hints: Hint) -> None:
        """See Wakeups."""
        with self._changed:
            for hint in hints:
                entry = (hint.due_at, hint.namespace, hint.run_id)
                if entry not in self._waiting:
                    self._waiting.add(entry)
                    heappush(self._heap, entry)
            # Of repeated hints too: after the machine slept, the time that a thread waits for may have passed unnoticed.
            self._changed.notify(len(hints))

    def take(self, now: TimestampMs) -> Hint | None:
        """Remove the earliest hint that is due at `now`, and return it."""
        with self._changed:
            return self._take(now)

    def start(self, handle: Callable[[Hint], None], *, threads: int = 4) -> None:
        """Hand every hint to `handle` when it is due, up to `threads` at a time. Raises RuntimeError: started already.

        Where `handle` raises, that is logged and the hint is forgotten.
        """
        with self._changed:
            if self._threads:
                raise RuntimeError("these wakeups are started already")
            self._is_stopping = False
            self._threads = [Thread(target=self._serve, args=(handle,), name=THREAD_NAME, daemon=True) for _ in range(threads)]
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Hand on no more hints; returns when those in progress have been handled and every thread has ended."""
        with self._changed:
            self._is_stopping = True
            self._changed.notify_all()
        for thread in self._threads:
            thread.join()
        self._threads = []

    def _serve(self, handle: Callable[[Hint], None]) -> None:
        while (hint := self._next()) is not None:
            try:
                handle(hint)
            except Exception as error:  # noqa: BLE001 - nothing is above, and other runs wait for this thread
                _log.error("the hint for run %s could not be handled\n%s", hint.run_id, _anatomy(error))

    def _next(self) -> Hint | None:
        """Wait for a hint that is due; None when it is time to stop."""
        with self._changed:
            while not self._is_stopping:
                now = self._clock.now()
                hint = self._take(now)
                if hint is not None:
                    # Another thread may still wait for the time of this one.
                    self._changed.notify()
                    return hint
                self._changed.wait(self._seconds_left(now))
            return None

    def _seconds_left(self, now: TimestampMs) -> float | None:
        return min(self._heap[0][0] - now, MAX_HINT_DELAY_MS) / 1_000 if self._heap else None

    def _take(self, now: TimestampMs) -> Hint | None:
        if not self._heap or self._heap[0][0] > now:
            return None
        entry = heappop(self._heap)
        self._waiting.remove(entry)
        due_at, namespace, run_id = entry
        return Hint(namespace=namespace, run_id=run_id, due_at=due_at)


def _anatomy(error: Exception) -> str:
    """Where and what, without the message, which may quote what a user sent."""
    return f"{''.join(traceback.format_tb(error.__traceback__))}{type(error).__qualname__}"
