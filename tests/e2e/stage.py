"""What tests and executors share: a folder with gates that hold tasks, and a file of what the tasks did."""

import asyncio
import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path

GATE_POLL_S = 0.02


@dataclass(frozen=True, slots=True)
class Effect:
    """`what` is `began`, `ended` or `cancelled`."""

    executor: str
    run_id: str
    task: str
    what: str


class Stage:
    """The folder, which several processes use at once."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._effects = folder / "effects.jsonl"

    def close_gate(self, executor: str, task: str) -> None:
        """Let this executor begin the task but not end it."""
        self._gate(executor, task).touch()

    def open_gate(self, executor: str, task: str) -> None:
        """Let it go on."""
        self._gate(executor, task).unlink()

    async def pass_gate(self, executor: str, task: str) -> None:
        """Return once the gate is open; it is where nobody has closed it."""
        while self._gate(executor, task).exists():
            await asyncio.sleep(GATE_POLL_S)

    def note(self, effect: Effect) -> None:
        """Add `effect` to the file, in one write, whoever else does so."""
        descriptor = os.open(self._effects, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        try:
            os.write(descriptor, json.dumps(asdict(effect)).encode() + b"\n")
        finally:
            os.close(descriptor)

    def effects(self, run_id: str) -> list[tuple[str, str, str]]:
        """Executor, task, and what it did, of this run, the earliest first."""
        lines = self._effects.read_text().splitlines() if self._effects.exists() else []
        found = [Effect(**json.loads(line)) for line in lines]
        return [(one.executor, one.task, one.what) for one in found if one.run_id == run_id]

    def has(self, run_id: str, executor: str, task: str, what: str) -> bool:
        """Whether this effect is in the file."""
        return (executor, task, what) in self.effects(run_id)

    def _gate(self, executor: str, task: str) -> Path:
        return self._folder / f"gate-{executor}-{task}"
