"""Doing something at a chosen access of the table, in the middle of whatever the harness does there."""

import asyncio
from collections.abc import Callable, Sequence

from aiki_push.adapters.storage.table import Write
from aiki_push.testing import FaultyTable


def executing() -> str | None:
    """The id of the run whose execution, by a harness, is accessing the table; None where it is somebody else."""
    try:
        current = asyncio.current_task()
    except RuntimeError:
        return None
    *what, run_id = ("" if current is None else current.get_name()).rsplit(" ", 1)
    return run_id if what == ["the execution of"] else None


def crash() -> None:
    """Have the executor die here, and what it calls with it: nothing after this access happens, and this one only if it has."""
    raise asyncio.CancelledError


class Accesses:
    """Counts the accesses of a table, and calls what is planned at them: by number from 1, before it or, for a write, after it.

    Only those count that `is_counted` says.
    """

    def __init__(self, table: FaultyTable, is_counted: Callable[[], bool] = lambda: True) -> None:
        self.number = 0
        self.plan: dict[tuple[str, int], Callable[[], None]] = {}
        self._is_counted = is_counted
        table.before_read, table.before_write, table.after_write = self._before, self._before, self._after

    def _before(self, _: object) -> None:
        if self._is_counted():
            self.number += 1
            self._do("before")

    def _after(self, _: Sequence[Write]) -> None:
        if self._is_counted():
            self._do("after")

    def _do(self, side: str) -> None:
        action = self.plan.pop((side, self.number), None)
        if action is not None:
            action()
