"""What the README tells a newcomer to do, done: its files and its commands, in real processes."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

from tests.architecture.source_files import ROOT
from tests.docs.test_docs_run import commands_of, programs_of
from tests.e2e.processes import PATIENCE_S, Processes, is_listening, processes_in, until
from tests.integration.test_push_serve import free_port

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]

README = (ROOT / "README.md").read_text("utf-8")
COMMANDS = commands_of(README)

SERVER, PORT = "http://127.0.0.1:9850", "8801"
"""The server and the endpoint's port as the page has them; others stand for them here, since these may be taken."""

BIN = Path(sys.executable).parent


@dataclass(frozen=True, slots=True)
class Newcomer:
    """Someone who works through the page in `folder`, with .venv activated."""

    processes: Processes
    folder: Path
    server: str
    port: str

    @property
    def environment(self) -> dict[str, str]:
        return {"PATH": f"{BIN}:{os.environ['PATH']}", "AIKI_URL": self.server}

    def saves_the_files(self) -> None:
        for name, text in programs_of(README).items():
            (self.folder / name).write_text(text.replace(SERVER, self.server).replace(PORT, self.port), "utf-8")

    def starts_the_endpoint(self) -> None:
        command = " ".join(_command("python", "serve_welcome.py"))
        self.processes.start("endpoint", ["sh", "-c", f"cd {self.folder} && exec {command}"], self.environment)
        until(lambda: is_listening(int(self.port)), "the endpoint listening")

    def runs(self, *command: str) -> str:
        """What the command prints; it must succeed."""
        environment = {**os.environ, **self.environment, "COLUMNS": "200"}
        ended = subprocess.run(
            command, cwd=self.folder, env=environment, capture_output=True, text=True, timeout=PATIENCE_S, check=False
        )
        assert (ended.returncode, ended.stderr) == (0, "")
        return ended.stdout

    def sends(self, *command: str) -> dict[str, object]:
        """The server's answer to a command of curl, of which only what the page uses is understood."""
        (url,) = [word for word in command if word.startswith(SERVER)]
        method = command[command.index("-X") + 1] if "-X" in command else "POST"
        body = command[command.index("-d") + 1].replace(PORT, self.port)
        answer = httpx.request(method, url.replace(SERVER, self.server), content=body)
        assert answer.status_code == 200, answer.text
        document: dict[str, object] = answer.json()
        return document


def _command(*beginning: str) -> list[str]:
    """The one command of the page that begins so."""
    (found,) = [command for command in COMMANDS if command[: len(beginning)] == list(beginning)]
    return found


@pytest.fixture
def newcomer(tmp_path: Path) -> Iterator[Newcomer]:
    with processes_in(tmp_path) as processes:
        dev = [*_command("aiki-push", "dev"), "--port", "0", "--home", str(tmp_path / ".aiki")]
        server = processes.start("server", [str(BIN / dev[0]), *dev[1:]], {})
        yield Newcomer(processes, tmp_path, server.find(r"http://127\.0\.0\.1:\d+"), str(free_port()))


def test_the_first_workflow_runs_as_the_page_says(newcomer: Newcomer) -> None:
    newcomer.saves_the_files()
    newcomer.starts_the_endpoint()

    registered = newcomer.sends(*_command("curl", "-X", "PUT"))
    assert registered["workflows"] == [{"name": "welcome", "version": "1.0.0"}]
    assert newcomer.sends(*_command("curl", f"{SERVER}/v1/runs"))["workflow"] == "welcome"

    started = newcomer.runs(*_command("aiki-push", "runs", "start"))
    assert started.splitlines()[1:] == ['"account-of-alan@example.com"']

    run_id, account = newcomer.runs(*_command("python", "start_welcome.py")).split()
    assert account == "account-of-ada@example.com"

    shown = newcomer.runs(*_command("aiki-push", "runs", "show")[:-1], run_id)
    assert f"run {run_id}: welcome 1.0.0 is completed at revision 5" in shown
    assert re.findall(r"→ (\w+)", shown) == ["queued", "running", "sleeping", "queued", "running", "completed"]
