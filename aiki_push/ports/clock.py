"""Time, as the server and the executors see it."""

from typing import Protocol

from aiki_push.domain.values import DurationMs, TimestampMs


class Clock(Protocol):
    """Where now comes from. Implementations are safe to call from any thread."""

    def now(self) -> TimestampMs:
        """Wall-clock time; may step when the machine's clock is set."""
        ...

    def monotonic_ms(self) -> float:
        """Milliseconds from an arbitrary start; never goes back, and has fractions."""
        ...

    def sleep(self, duration_ms: DurationMs) -> None:
        """Block the calling thread for `duration_ms`."""
        ...
