"""The machine's clock and randomness."""

import os
import random
import time

from aiki_push.domain.values import DurationMs, TimestampMs


class SystemClock:
    """The machine's clock."""

    def now(self) -> TimestampMs:
        """Wall-clock time in milliseconds since the epoch."""
        return TimestampMs(time.time_ns() // 1_000_000)

    def monotonic_ms(self) -> float:
        """Milliseconds since an arbitrary start."""
        return time.monotonic() * 1_000

    def sleep(self, duration_ms: DurationMs) -> None:
        """Block the calling thread."""
        time.sleep(duration_ms / 1_000)


class SystemEntropy:
    """The operating system's randomness."""

    def __init__(self) -> None:
        self._generator = random.SystemRandom()

    def token(self, size: int) -> bytes:
        """`size` unguessable bytes."""
        return os.urandom(size)

    def fraction(self) -> float:
        """A number in [0, 1)."""
        return self._generator.random()
