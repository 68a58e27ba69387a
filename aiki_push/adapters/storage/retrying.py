"""Repeats what may be repeated: calls of the table that had no definite answer."""

from collections.abc import Callable, Sequence
from typing import TypeVar

from aiki_push.adapters.storage.table import Item, Key, Page, Query, Table, Write
from aiki_push.domain.errors import StorageUnavailable
from aiki_push.domain.values import DurationMs
from aiki_push.ports.clock import Clock
from aiki_push.ports.entropy import Entropy

RETRY_BUDGET_MS = DurationMs(5_000)
FIRST_DELAY_MS = 25
MAX_DELAY_MS = 1_000

AnswerT = TypeVar("AnswerT")


class RetryingTable:
    """A table that waits and tries again, with full jitter, for up to `budget_ms` a call."""

    def __init__(self, table: Table, clock: Clock, entropy: Entropy, *, budget_ms: DurationMs = RETRY_BUDGET_MS) -> None:
        self._table = table
        self._clock = clock
        self._entropy = entropy
        self._budget_ms = budget_ms

    def get(self, key: Key) -> Item | None:
        """See Table."""
        return self._repeated(lambda: self._table.get(key))

    def get_many(self, keys: Sequence[Key]) -> Sequence[Item]:
        """See Table."""
        return self._repeated(lambda: self._table.get_many(keys))

    def write(self, writes: Sequence[Write], token: str) -> None:
        """See Table."""
        return self._repeated(lambda: self._table.write(writes, token))

    def query(self, query: Query, after: Item | None = None) -> Page:
        """See Table."""
        return self._repeated(lambda: self._table.query(query, after))

    def _repeated(self, call: Callable[[], AnswerT]) -> AnswerT:
        started_at = self._clock.monotonic_ms()
        attempt = 0
        while True:
            try:
                return call()
            except StorageUnavailable as error:
                attempt += 1
                delay_ms = self._delay_ms(attempt)
                if self._clock.monotonic_ms() - started_at + delay_ms > self._budget_ms:
                    raise StorageUnavailable(f"{error.detail}; gave up after {attempt} attempts", attempts=attempt) from error
            self._clock.sleep(delay_ms)

    def _delay_ms(self, attempt: int) -> DurationMs:
        # The exponent is bounded, so that a long budget does not end in a number too large for a float.
        ceiling = min(MAX_DELAY_MS, FIRST_DELAY_MS * 2 ** min(attempt - 1, 10))
        return DurationMs(1 + int(self._entropy.fraction() * ceiling))
