"""A server whose requests to its table are counted, and what they come to, as a page puts it."""

from collections.abc import Callable

from aiki_push.adapters.storage.memory.table import MemoryTable
from aiki_push.domain.values import RunId
from aiki_push.testing import CountingTable, Counts, FakeClock
from tests.integration.owners import Owner, claim, start, started
from tests.local_system import NAMESPACE, LocalSystem


class Accounts:
    """A server whose requests to its table are counted."""

    def __init__(self) -> None:
        self.counting = CountingTable(MemoryTable())
        self.clock = FakeClock()
        self.system = LocalSystem(self.counting, clock=self.clock)

    def cost(self, what: Callable[[], object]) -> str:
        """What `what` took: requests, then write units."""
        counts = self._counts(what)
        return f"{_writes(counts)} | {counts.write_units}"

    def reads(self, what: Callable[[], object]) -> str:
        """What was read for `what`."""
        counts = self._counts(what)
        kinds = {"get": counts.gets, "get of many": counts.batch_gets, "query": counts.queries}
        return ", ".join(_number(number, kind) for kind, number in kinds.items() if number) or "nothing"

    def owner(self) -> Owner:
        """Someone who has claimed a new run."""
        return Owner(self.system, claim(self.system, start(self.system)))

    def working_owner(self) -> Owner:
        """Someone who has also begun a task."""
        owner = self.owner()
        owner.append(started("t1"))
        return owner

    def advanced(self, run_id: RunId, after_ms: int = 0) -> None:
        """The run has been given what it needs, after some time."""
        self.clock.advance(after_ms)
        self.system.attention.advance(NAMESPACE, run_id)

    def _counts(self, what: Callable[[], object]) -> Counts:
        self.counting.reset()
        what()
        return self.counting.reset()


def _writes(counts: Counts) -> str:
    assert counts.transactions < 2
    singles = {0: "no write", 1: "one write", 2: "two writes"}[counts.single_writes]
    items = counts.items_written - counts.single_writes
    transaction = f"one transaction of {items} items" if items else "one refused transaction"
    made = [transaction] * counts.transactions + [singles] * bool(counts.single_writes)
    return ", ".join(made) or singles


def _number(number: int, kind: str) -> str:
    plurals = {"get": "gets", "get of many": "gets of many", "query": "queries"}
    return f"{number} {kind if number == 1 else plurals[kind]}"
