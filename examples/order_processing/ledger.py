"""Who did what to the outside world: a table in SQLite that several processes write to.

An execution of a task writes one row before its effect and one after it, each in a transaction of its own. So an execution that
was cut off shows: it started and never ended.
"""

import os
import sqlite3
from collections.abc import Generator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal

from aiki_push import TaskInfo

End = Literal["finished", "failed"]

_BUSY_TIMEOUT_S = 10

_TABLE = """
CREATE TABLE IF NOT EXISTS effects (
    id              INTEGER PRIMARY KEY,
    recorded_at     INTEGER NOT NULL DEFAULT (CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER)),
    event           TEXT NOT NULL CHECK (event IN ('started', 'finished', 'failed')),
    started_id      INTEGER UNIQUE REFERENCES effects (id),
    order_id        TEXT NOT NULL,
    run_id          TEXT NOT NULL,
    task            TEXT NOT NULL,
    attempt         INTEGER NOT NULL,
    idempotency_key TEXT NOT NULL,
    pid             INTEGER NOT NULL
)
"""

_START = """
INSERT INTO effects (event, order_id, run_id, task, attempt, idempotency_key, pid) VALUES ('started', ?, ?, ?, ?, ?, ?)
"""

_END = """
INSERT INTO effects (event, started_id, order_id, run_id, task, attempt, idempotency_key, pid)
SELECT ?, id, order_id, run_id, task, attempt, idempotency_key, pid FROM effects WHERE id = ?
"""

_EXECUTIONS = """
SELECT began.id, began.order_id, began.run_id, began.task, began.attempt, began.idempotency_key, began.pid,
       began.recorded_at, ended.recorded_at, ended.event
FROM effects AS began LEFT JOIN effects AS ended ON ended.started_id = began.id
WHERE began.event = 'started' ORDER BY began.id
"""


@dataclass(frozen=True, slots=True)
class Execution:
    """One try of one task, in process `pid`. Without `end` it is still running, or was cut off. Times are ms since 1970, UTC."""

    id: int
    order_id: str
    run_id: str
    task: str
    attempt: int
    idempotency_key: str
    pid: int
    started_at: int
    ended_at: int | None
    end: End | None


class Ledger:
    """The table in the file `path`, which is made on first use."""

    def __init__(self, path: Path) -> None:
        self._path = path

    @contextmanager
    def effect(self, info: TaskInfo, order_id: str) -> Generator[None]:
        """Record that the block begins and then how it ended, which stays unsaid if the block is cut off."""
        execution_id = self.start(info, order_id)
        try:
            yield
        except Exception:
            self.end(execution_id, "failed")
            raise
        self.end(execution_id, "finished")

    def start(self, info: TaskInfo, order_id: str) -> int:
        """Record that an effect is about to happen, and return the execution's id."""
        values = (order_id, info.run_id, info.task, info.attempt, info.idempotency_key, os.getpid())
        with self._connection() as connection:
            return connection.execute(_START, values).lastrowid or 0

    def end(self, execution_id: int, end: End) -> None:
        """Record that the effect happened, or that it failed. Raises sqlite3.IntegrityError the second time."""
        with self._connection() as connection:
            connection.execute(_END, (end, execution_id))

    def executions(self) -> tuple[Execution, ...]:
        """All, in the order of their starts."""
        with self._connection() as connection:
            return tuple(Execution(*row) for row in connection.execute(_EXECUTIONS))

    @contextmanager
    def _connection(self) -> Generator[sqlite3.Connection]:
        """Each statement is a transaction, committed at once. It outlives the process; nothing is synced for a power cut."""
        if not self._path.exists():
            self._make()
        with closing(sqlite3.connect(self._path, timeout=_BUSY_TIMEOUT_S, isolation_level=None)) as connection:
            connection.execute("PRAGMA synchronous = OFF")
            yield connection

    def _make(self) -> None:
        # The file gets its name when it is complete: where two processes switch one file to WAL at once, one is refused.
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(dir=self._path.parent) as folder:
            draft = Path(folder, self._path.name)
            with closing(sqlite3.connect(draft, isolation_level=None)) as connection:
                connection.execute("PRAGMA journal_mode = WAL")
                connection.execute(_TABLE)
            with suppress(FileExistsError):
                self._path.hardlink_to(draft)
