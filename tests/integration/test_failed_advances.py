"""Runs that could not be advanced, and that somebody else advanced meanwhile."""

from collections.abc import Sequence

from aiki_push.adapters.storage.memory.table import MemoryTable
from aiki_push.adapters.storage.retrying import RETRY_BUDGET_MS
from aiki_push.adapters.storage.table import Write
from aiki_push.domain.errors import StorageUnavailable
from aiki_push.domain.run_states import Completed
from aiki_push.testing import FakeClock, FaultyTable
from tests.integration.owners import FINISH, Owner, claim, start
from tests.local_system import NAMESPACE, LocalSystem


def test_a_run_that_ends_while_its_advance_fails_is_never_due_again() -> None:
    table, clock = FaultyTable(MemoryTable()), FakeClock()
    system = LocalSystem(table, clock=clock)
    run_id = start(system)
    owner = Owner(system, claim(system, run_id))
    clock.advance(90_000)

    def finish_and_throttle(_: Sequence[Write]) -> None:
        table.before_write = lambda _: None
        owner.send(owner.checkpoint(end=FINISH))
        table.before_write = throttle
        raise StorageUnavailable("throttled")

    def throttle(_: Sequence[Write]) -> None:
        if clock.slept_ms < RETRY_BUDGET_MS:
            raise StorageUnavailable("throttled")

    table.before_write = finish_and_throttle
    assert not system.attention.advance_safely(NAMESPACE, run_id)
    assert (system.run(run_id).state, system.run(run_id).due_at) == (Completed(), None)
