"""The system in one process, on the memory store: the framework alone."""

from aiki_push.adapters.system import SystemClock
from aiki_push.domain.values import TimestampMs
from aiki_push.testing.local_system import NAMESPACE, LocalSystem

HOUR_MS = 3_600_000


class ShiftedClock(SystemClock):
    """The machine's clock, a while ahead: hours of waiting pass at once."""

    def __init__(self) -> None:
        self.ahead_ms = 0

    def now(self) -> TimestampMs:
        """The machine's time and what it is ahead."""
        return TimestampMs(super().now() + self.ahead_ms)


class EmbeddedSystem(LocalSystem):
    """A server in memory and executors that call it in process, in a world where hours can pass at once."""

    def __init__(self) -> None:
        self.shifted_clock = ShiftedClock()
        super().__init__(clock=self.shifted_clock)

    def wake(self, run_id: str) -> None:
        """Let an hour pass, and give the run what it needs then."""
        self.shifted_clock.ahead_ms += HOUR_MS + 100_000
        self.attention.advance(NAMESPACE, run_id)
