"""Processes of a test: each writes to a log of its own, and every one is ended with the test."""

import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, TypeVar

from aiki_push.adapters.system import SystemClock
from aiki_push.domain.values import DurationMs
from tests.architecture.source_files import ROOT

T = TypeVar("T")

PATIENCE_S = 90
"""How long anything may take to happen, on a machine that others use too. Nothing is concluded from how long it took."""

CLOCK = SystemClock()


@dataclass(slots=True)
class Process:
    """A child process; `log_file` has all that it printed."""

    name: str
    popen: "subprocess.Popen[bytes]"
    log_file: Path
    has_own_group: bool = False

    @property
    def pid(self) -> int:
        return self.popen.pid

    @property
    def is_running(self) -> bool:
        return self.popen.poll() is None

    def log(self) -> str:
        """What it has printed so far."""
        return self.log_file.read_text(errors="replace")

    def find(self, pattern: str) -> str:
        """The first match in the log, as soon as it is there."""

        def found() -> str | None:
            may_print_more = self.is_running
            match = re.search(pattern, self.log())
            assert match or may_print_more, f"{self.name} has ended without printing {pattern}:\n{self.log()}"
            return match.group() if match else None

        return until(found, f"{pattern} in the log of {self.name}")

    def send(self, number: signal.Signals) -> None:
        """Send a signal to this process and no other."""
        self.popen.send_signal(number)

    def ended(self) -> int:
        """Its exit code, once it has ended."""
        return self.popen.wait(timeout=PATIENCE_S)

    def has_left_something(self) -> bool:
        """Whether a process of its own group still runs, though it has ended itself."""
        assert self.has_own_group
        assert not self.is_running
        with suppress(ProcessLookupError):
            os.killpg(self.pid, 0)
            return True
        return False

    def kill(self) -> None:
        """End it as a power cut would, with everything in its own group."""
        if self.has_own_group:
            with suppress(ProcessLookupError):
                os.killpg(self.pid, signal.SIGKILL)
        self.popen.kill()
        self.popen.wait()


@dataclass(slots=True)
class Processes:
    """Starts processes whose logs go to `folder`."""

    folder: Path
    started: list[Process] = field(default_factory=list)

    def start(
        self, name: str, command: Sequence[str], environment: Mapping[str, str], *, group: Literal["ours", "own"] = "ours"
    ) -> Process:
        """A process in the project's folder, with `environment` on top of this process's own.

        Processes of our group end with us when a terminal or `.ci/run` ends it; one with its `own` group can be told from its children.
        """
        log_file = self.folder / f"{name}.log"
        with log_file.open("wb") as log:
            popen = subprocess.Popen(
                command,
                cwd=ROOT,
                env={**os.environ, **environment},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                process_group=0 if group == "own" else None,
            )
        process = Process(name, popen, log_file, has_own_group=group == "own")
        self.started.append(process)
        return process

    def python(self, name: str, arguments: Sequence[str], environment: Mapping[str, str]) -> Process:
        """A process of this Python."""
        return self.start(name, [sys.executable, *arguments], environment)


@contextmanager
def processes_in(folder: Path) -> Iterator[Processes]:
    """Processes that end with the context, however it ends. Their logs are printed then: pytest shows them where a test failed."""
    processes = Processes(folder)
    try:
        yield processes
    finally:
        for process in reversed(processes.started):
            process.kill()
        for process in processes.started:
            print(f"---- {process.name} (exit code {process.popen.returncode})\n{process.log()}")


def until(look: Callable[[], T | None], what: str) -> T:
    """What `look` finds, as soon as it finds anything."""
    ends_at_ms = CLOCK.monotonic_ms() + PATIENCE_S * 1_000
    while True:
        if found := look():
            return found
        assert CLOCK.monotonic_ms() < ends_at_ms, f"after {PATIENCE_S} s still no sign of this: {what}"
        CLOCK.sleep(DurationMs(20))


def is_listening(port: int) -> bool:
    """Whether something on this machine answers at `port`."""
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
