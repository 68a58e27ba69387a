"""The example's ledger, written to by several processes."""

import os
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from aiki_push import TaskInfo
from aiki_push.domain.values import RunId
from examples.order_processing.ledger import End, Execution, Ledger

ROOT = Path(__file__).parents[3]

RESERVING = TaskInfo(run_id=RunId("run"), task_id="t1", task="reserve-stock", attempt=1)

IN_THE_MIDDLE = """
import sys
from pathlib import Path
from aiki_push import TaskInfo
from examples.order_processing.ledger import Ledger

with Ledger(Path(sys.argv[1])).effect(TaskInfo(run_id="run", task_id="t1", task="reserve-stock", attempt=1), "order-001"):
    print("started", flush=True)
    sys.stdin.readline()
"""

MANY = """
import sys
from pathlib import Path
from aiki_push import TaskInfo
from examples.order_processing.ledger import Ledger

print("ready", flush=True)
sys.stdin.readline()
ledger = Ledger(Path(sys.argv[1]))
for number in range(50):
    with ledger.effect(TaskInfo(run_id="run", task_id=str(number), task="reserve-stock", attempt=1), "order-001"):
        pass
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "new" / "ledger.sqlite"


def begin(program: str, file: Path, *, says: str) -> subprocess.Popen[str]:
    """A process that has come as far as to say `says` and goes on when it gets a line."""
    process = subprocess.Popen(
        [sys.executable, "-c", program, str(file)], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == f"{says}\n"
    return process


def timeless(executions: tuple[Execution, ...]) -> list[tuple[int, str, str, str, int, str, int, End | None]]:
    return [
        (one.id, one.order_id, one.run_id, one.task, one.attempt, one.idempotency_key, one.pid, one.end) for one in executions
    ]


def test_a_killed_process_leaves_an_execution_without_an_end_and_the_next_process_has_its_own(file: Path) -> None:
    killed = begin(IN_THE_MIDDLE, file, says="started")
    killed.kill()
    killed.communicate()
    healthy = begin(IN_THE_MIDDLE, file, says="started")
    healthy.communicate("\n")

    assert timeless(Ledger(file).executions()) == [
        (1, "order-001", "run", "reserve-stock", 1, "run-t1", killed.pid, None),
        (2, "order-001", "run", "reserve-stock", 1, "run-t1", healthy.pid, "finished"),
    ]


def test_processes_that_make_and_fill_the_ledger_at_once_lose_nothing(file: Path) -> None:
    processes = [begin(MANY, file, says="ready") for _ in range(3)]
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("\n")
        process.stdin.flush()
    for process in processes:
        process.communicate()

    ends = [(one.pid, one.idempotency_key, one.end) for one in Ledger(file).executions()]
    assert sorted(ends) == sorted((process.pid, f"run-{number}", "finished") for process in processes for number in range(50))
    assert [path.name for path in file.parent.iterdir() if not path.name.startswith(file.name)] == []


def test_the_file_is_in_wal_mode(file: Path) -> None:
    Ledger(file).start(RESERVING, "order-001")
    with sqlite3.connect(file) as connection:
        mode = connection.execute("PRAGMA journal_mode").fetchone()
    connection.close()
    assert mode == ("wal",)


def test_the_start_is_seen_by_others_before_the_effect_and_the_end_after_it(file: Path) -> None:
    with Ledger(file).effect(RESERVING, "order-001"):
        during = Ledger(file).executions()
    after = Ledger(file).executions()

    facts = (1, "order-001", "run", "reserve-stock", 1, "run-t1", os.getpid())
    assert [timeless(during), timeless(after)] == [[(*facts, None)], [(*facts, "finished")]]
    assert during[0].ended_at is None
    assert after[0].ended_at is not None
    assert 1_700_000_000_000 < after[0].started_at <= after[0].ended_at


def test_an_effect_that_raises_has_failed(file: Path) -> None:
    with pytest.raises(ZeroDivisionError), Ledger(file).effect(RESERVING, "order-001"):
        _ = 1 / 0
    assert [one.end for one in Ledger(file).executions()] == ["failed"]


def test_an_effect_that_is_cancelled_has_no_end(file: Path) -> None:
    with pytest.raises(KeyboardInterrupt), Ledger(file).effect(RESERVING, "order-001"):
        raise KeyboardInterrupt
    assert [one.end for one in Ledger(file).executions()] == [None]


def test_an_execution_ends_once(file: Path) -> None:
    ledger = Ledger(file)
    number = ledger.start(RESERVING, "order-001")
    ledger.end(number, "finished")
    with pytest.raises(sqlite3.IntegrityError):
        ledger.end(number, "failed")
    assert [one.end for one in ledger.executions()] == ["finished"]


def test_what_is_in_the_ledger_stays_when_it_is_opened_again(file: Path) -> None:
    Ledger(file).start(RESERVING, "order-001")
    Ledger(file).start(RESERVING, "order-002")
    assert [one.order_id for one in Ledger(file).executions()] == ["order-001", "order-002"]
