"""The processes of the demo: a server and endpoints, each with its log in a file, all of them ended with the demo."""

import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from aiki_push.errors import AikiError

START_TIMEOUT_S = 30


class DemoFailed(AikiError):
    """Something did not happen that the demo promises."""


@dataclass(slots=True)
class Process:
    """A child process that writes to a log file."""

    name: str
    popen: "subprocess.Popen[bytes]"
    log_file: Path

    @property
    def pid(self) -> int:
        """Its process id."""
        return self.popen.pid

    @property
    def is_running(self) -> bool:
        """Whether it has not ended."""
        return self.popen.poll() is None

    def log(self) -> str:
        """What it has written so far."""
        return self.log_file.read_text(errors="replace")

    def kill(self) -> None:
        """End it at once, as a crash or a power cut would."""
        self.popen.kill()
        self.popen.wait()

    def freeze(self) -> None:
        """Stop it where it stands; it does not notice."""
        self.popen.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        """Let it go on as if no time had passed."""
        self.popen.send_signal(signal.SIGCONT)


@dataclass(slots=True)
class Processes:
    """Starts processes in `folder`, and ends every one of them when the demo ends, however it ends."""

    folder: Path
    _started: list[Process] = field(default_factory=list)

    def start(self, name: str, arguments: list[str], environment: Mapping[str, str]) -> Process:
        """A Python process; `arguments` follow the interpreter."""
        log_file = self.folder / f"{name}.log"
        with log_file.open("wb") as log:
            popen = subprocess.Popen(
                [sys.executable, *arguments], stdout=log, stderr=subprocess.STDOUT, env={**os.environ, **environment}
            )
        process = Process(name, popen, log_file)
        self._started.append(process)
        return process

    def end(self) -> None:
        """End everything that still runs."""
        for process in reversed(self._started):
            if process.is_running:
                process.thaw()
                process.popen.terminate()
        for process in self._started:
            with suppress(subprocess.TimeoutExpired):
                process.popen.wait(timeout=5)
            process.kill()


def until(is_true: Callable[[], bool], what: str, *, timeout_s: float = START_TIMEOUT_S) -> None:
    """Wait for something to happen. Raises DemoFailed, saying what did not."""
    ends_at = time.monotonic() + timeout_s
    while not is_true():
        if time.monotonic() > ends_at:
            raise DemoFailed(f"after {timeout_s:g} s still no sign of this: {what}")
        time.sleep(0.005)


def find_in_log(process: Process, pattern: str) -> str:
    """The first match in a process's log, as soon as it is there. Raises DemoFailed: the process ended, or never wrote it."""

    def has_match() -> bool:
        if not process.is_running:
            raise DemoFailed(f"{process.name} ended:\n{process.log()}")
        return re.search(pattern, process.log()) is not None

    until(has_match, f"{pattern} in the log of {process.name}")
    found = re.search(pattern, process.log())
    return found.group() if found else ""


def is_listening(port: int) -> bool:
    """Whether something on this machine answers at `port`."""
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def free_port() -> int:
    """A port that nobody uses now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
