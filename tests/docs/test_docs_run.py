"""The documentation does what it says.

Python: each file's blocks are one program, run in an empty folder. `<!-- file: orders.py -->` before a block saves it under that
name, for the others to import; `<!-- not run: reason -->` leaves a block out.
Shell: every command is one that we have, with options that it has. None is run.
"""

import ast
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from shutil import which

import pytest

from aiki_push.apps.environment import settings_of
from aiki_push.apps.settings import ServerSettings
from tests.docs.defined_commands import commands

ROOT = Path(__file__).parents[2]

PAGES = sorted(path for path in (ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")) if path.exists())

BLOCK = re.compile(r"(?:^<!-- (?P<mark>[a-z ]+): (?P<detail>.+?) -->\n+)?^```(?P<language>\w*)\n(?P<text>.*?)^```$", re.M | re.S)

LANGUAGES = {"python", "bash", "console", "http", "json", "mermaid", "text", "toml", "yaml"}
"""What a block may say it is. Anything else would pass unseen."""

OTHER_COMMANDS = {"cd", "curl", "git", "pip", "python"}

SETTINGS = ROOT / "aiki_push/apps/settings.py"


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block. `line` is its fence's, counted from 1; `mark` and `detail` are those of the HTML comment before it."""

    language: str
    text: str
    line: int
    mark: str | None
    detail: str | None

    @property
    def is_run(self) -> bool:
        return self.mark != "not run"


def blocks_of(page: str) -> list[Block]:
    return [
        Block(found["language"], found["text"], page.count("\n", 0, found.start("language")) + 1, found["mark"], found["detail"])
        for found in BLOCK.finditer(page)
    ]


def programs_of(page: str) -> dict[str, str]:
    """The files to write, by name. Code stands at its line of the page; the page's own program, `page.py`, imports the others."""
    programs = {"page.py": ""}
    for block in blocks_of(page):
        if block.language == "python" and block.is_run:
            name = block.detail if block.mark == "file" and block.detail else "page.py"
            if name != "page.py":
                programs["page.py"] = _at_line(block.line, programs["page.py"], f"import {name.removesuffix('.py')}\n")
            programs[name] = _at_line(block.line + 1, programs.get(name, ""), block.text)
    return programs


def _at_line(line: int, before: str, text: str) -> str:
    return before + "\n" * (line - 1 - before.count("\n")) + text


def run_programs(page: str, folder: Path) -> subprocess.CompletedProcess[str]:
    for name, text in programs_of(page).items():
        (folder / name).write_text(text, "utf-8")
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    return subprocess.run(
        [sys.executable, "-W", "error", "page.py"],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
    )


def commands_of(page: str) -> list[list[str]]:
    """Each command of each shell block, as its words; of a console block, the lines after `$ `."""
    commands: list[list[str]] = []
    for block in blocks_of(page):
        if block.language in ("bash", "console") and block.is_run:
            text = block.text.replace("\\\n", " ")
            if block.language == "console":
                text = "".join(line[2:] for line in text.splitlines(keepends=True) if line.startswith("$ "))
            commands += _split(re.sub(r"(^|\s)#.*", r"\1", text, flags=re.M))
    return commands


def _split(text: str) -> Iterator[list[str]]:
    words = shlex.shlex(text, posix=True, punctuation_chars="\n|&;")
    words.whitespace, words.whitespace_split = " \t", True
    command: list[str] = []
    for word in [*words, "\n"]:
        if set(word) <= set("\n|&;"):
            if command:
                yield command
            command = []
        elif command or not re.match(r"[A-Z_]+=", word):
            command.append(word)


def fault_of(command: list[str]) -> str | None:
    """Why `command` cannot be right, or None."""
    name, *arguments = command
    if name == "make":
        unknown = {word for word in arguments if "=" not in word and not word.startswith("-")} - make_targets()
        return f"make has no target {sorted(unknown)}" if unknown else None
    if name == "aiki-push":
        program = which(name, path=str(Path(sys.executable).parent)) or name
        answer = subprocess.run([program, *arguments, "--help"], capture_output=True, text=True, timeout=30, check=False)
        return answer.stderr or f"exit {answer.returncode}" if answer.returncode else None
    return None if name in OTHER_COMMANDS else f"{name} is not a command that the documentation may use"


def make_targets() -> set[str]:
    return set(re.findall(r"^([a-z0-9-]+):", (ROOT / "Makefile").read_text("utf-8"), re.M))


def settings_in(source: str) -> set[str]:
    """Environment variables of the settings classes in `source`: by field, or written out in full."""
    nodes = list(ast.walk(ast.parse(source)))
    fields = {
        f"AIKI_{node.target.id.upper()}"
        for node in nodes
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)
    }
    return fields | set(re.findall(r"\bAIKI_[A-Z0-9_]+", source))


@pytest.fixture(params=PAGES, ids=lambda path: path.relative_to(ROOT).as_posix())
def page(request: pytest.FixtureRequest) -> str:
    path = request.param
    assert isinstance(path, Path)
    return path.read_text("utf-8")


def test_every_block_says_what_it_is(page: str) -> None:
    assert [f"line {block.line}: {block.language!r}" for block in blocks_of(page) if block.language not in LANGUAGES] == []


def test_every_fence_belongs_to_a_block(page: str) -> None:
    assert page.count("```") == 2 * len(blocks_of(page))


def test_the_python_runs(page: str, tmp_path: Path) -> None:
    done = run_programs(page, tmp_path)
    assert done.returncode == 0, done.stderr


def test_the_shell_commands_exist(page: str) -> None:
    assert [f"{shlex.join(command)}: {fault}" for command in commands_of(page) if (fault := fault_of(command))] == []


def test_every_setting_named_exists(page: str) -> None:
    known = settings_in(SETTINGS.read_text("utf-8")) | settings_of(ServerSettings).keys()
    known |= {variable for command in commands() for variable in command.variables}
    assert set(re.findall(r"\bAIKI_[A-Z0-9_]*[A-Z0-9]", page)) - known == set()


PAGE = """\
Text.

<!-- file: orders.py -->
```python
ORDERS = [1, 2]
```

```python
import orders
total = sum(orders.ORDERS)
```

<!-- not run: needs an account -->

```python
total = 0
```

```python
raise SystemExit(f"total {total}")
```
"""


def test_blocks_share_one_program_and_can_fail(tmp_path: Path) -> None:
    done = run_programs(PAGE, tmp_path)
    assert (done.returncode, done.stderr) == (1, "total 3\n")


def test_an_error_names_its_line_of_the_page(tmp_path: Path) -> None:
    assert 'page.py", line 20' in run_programs(PAGE.replace("raise SystemExit", "raise Exit"), tmp_path).stderr


@pytest.mark.parametrize("language", ["bash", "console"])
def test_commands_are_found(language: str) -> None:
    text = "$ KEY=1 make setup && make demo  # twice\n$ curl -d '{\"a\": 1}' \\\n  http://localhost | python -m json.tool\n"
    page = f"```{language}\n{text if language == 'console' else text.replace('$ ', '')}```\n"
    assert commands_of(page) == [
        ["make", "setup"],
        ["make", "demo"],
        ["curl", "-d", '{"a": 1}', "http://localhost"],
        ["python", "-m", "json.tool"],
    ]


@pytest.mark.parametrize(
    ("command", "is_right"), [("make test", True), ("make tea", False), ("rm -r .", False), ("aiki-push --no-such", False)]
)
def test_a_wrong_command_is_seen(command: str, *, is_right: bool) -> None:
    assert (fault_of(command.split()) is None) == is_right


def test_settings_are_known_by_field_and_by_name() -> None:
    assert settings_in('class S:\n    table_name: str\n    x = Field(alias="AIKI_URL")') == {"AIKI_TABLE_NAME", "AIKI_URL"}
