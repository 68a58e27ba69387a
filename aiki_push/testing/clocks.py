"""A clock that only moves when it is told to."""

from threading import Lock

from aiki_push.domain.values import DurationMs, TimestampMs

FAKE_NOW = TimestampMs(1_767_225_600_000)
"""2026-01-01T00:00:00Z."""


class FakeClock:
    """A Clock at `now` until it is advanced. Sleeping advances it and returns at once; `slept_ms` adds up how long."""

    def __init__(self, now: TimestampMs = FAKE_NOW) -> None:
        self._lock = Lock()
        self._now = now
        self._monotonic_ms = 0
        self.slept_ms = 0

    def now(self) -> TimestampMs:
        """The time that was set."""
        return self._now

    def monotonic_ms(self) -> float:
        """Milliseconds advanced since the clock was made."""
        return float(self._monotonic_ms)

    def sleep(self, duration_ms: DurationMs) -> None:
        """Advance by `duration_ms`."""
        self.advance(duration_ms)
        with self._lock:
            self.slept_ms += duration_ms

    def advance(self, duration_ms: int) -> None:
        """Let `duration_ms` pass."""
        with self._lock:
            self._now = TimestampMs(self._now + duration_ms)
            self._monotonic_ms += duration_ms

    def set(self, now: TimestampMs) -> None:
        """Set the wall clock, forwards or back; the monotonic time stays."""
        with self._lock:
            self._now = now
