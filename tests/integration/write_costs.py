"""What requests have cost, to be compared and added up."""

from typing import TypeAlias

from aiki_push.sdk.workflow_version import AnyWorkflowVersion
from aiki_push.testing import CountingTable, Counts
from tests.local_system import LocalSystem

Writes: TypeAlias = tuple[int, int, int, int]
"""Single writes, transactions, the items that both have written, write units."""


def writes(counts: Counts) -> Writes:
    """The writes among what was counted."""
    return counts.single_writes, counts.transactions, counts.items_written, counts.write_units


def single(number: int = 1) -> Writes:
    """So many writes of one unit each."""
    return number, 0, number, number


def transaction(items: int, units: int) -> Writes:
    """One transaction."""
    return 0, 1, items, units


def sum_of(*costs: Writes) -> Writes:
    """All of them together."""
    singles, transactions, items, units = (sum(column) for column in zip(*costs, strict=True))
    return singles, transactions, items, units


CLAIM = FINISHING = single()


async def segment_cost(system: LocalSystem, counting: CountingTable, version: AnyWorkflowVersion, run_id: str) -> Writes:
    """What the next segment of a run of `version` writes."""
    revision = system.run(run_id).revision
    counting.reset()
    result = await system.executor(version).execute(run_id, revision=revision)
    assert result.outcome in ("completed", "parked"), result
    return writes(counting.reset())
