"""Nothing of the public surface is left out: commands, errors, settings, outcomes, states; and every link leads somewhere."""

import re
from pathlib import Path
from typing import get_args

import pytest

import aiki_push
import aiki_push.errors
from aiki_push.apps.environment import settings_of
from aiki_push.apps.settings import ServerSettings
from aiki_push.domain.errors import API_ERRORS, ApiError
from aiki_push.domain.run_states import STATUSES, StalledReason
from aiki_push.ports.api.catalogue import CATALOGUE
from aiki_push.ports.api.operation import Operation
from aiki_push.sdk.outcomes import Outcome
from tests.architecture.source_files import ROOT
from tests.docs.defined_commands import Command, commands
from tests.docs.test_docs_run import PAGES

COMMANDS = tuple(commands())

TEXT = {path.relative_to(ROOT).as_posix(): path.read_text("utf-8") for path in PAGES}

LINK = re.compile(r"\]\((?!https?://)([^)#]*)(?:#([^)]+))?\)")


def rows(page: str) -> list[list[str]]:
    """Every row of every table of a page, as its cells."""
    lines = [line for line in TEXT[page].splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]


def first_cells(page: str) -> set[str]:
    """The code in the first cells of a page's tables."""
    return {name for row in rows(page) for name in re.findall(r"`([^`]+)`", row[0])}


def anchors(page: str) -> set[str]:
    """Where links into a page may lead, by the rule of GitHub."""
    headings = re.findall(r"^#+ (.+)$", re.sub(r"^```.*?^```$", "", TEXT[page], flags=re.M | re.S), re.M)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("operation", CATALOGUE, ids=lambda operation: operation.operation)
def test_every_operation_has_a_section(operation: type[Operation[object]]) -> None:
    assert operation.operation in anchors("docs/api.md")


def test_there_are_commands() -> None:
    assert {"dev", "demo", "runs start", "keys retire"} <= {command.name for command in COMMANDS}


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.name)
def test_every_command_is_in_the_table_with_its_options(command: Command) -> None:
    assert re.search(rf"^\| `aiki-push {command.name}[ `A-Z]", TEXT["docs/operating.md"], re.M)
    group = f"{command.name.partition(' ')[0]} …"
    documented = {
        name
        for row in rows("docs/operating.md")
        if {command.name, group} & set(re.findall(r"`([^`]+)`", row[0])) and len(row) > 1
        for name in re.findall(r"`(--[a-z-]+)`", row[1])
    }
    assert documented == command.options
    assert {variable for variable in command.variables if variable not in TEXT["docs/operating.md"]} == set()


def test_every_setting_is_in_the_table() -> None:
    assert settings_of(ServerSettings).keys() - first_cells("docs/settings.md") == set()


def test_every_public_error_is_in_the_table_and_no_other() -> None:
    names = {name for name in first_cells("docs/errors.md") if re.fullmatch(r"[A-Z]\w+", name)}
    assert names == set(aiki_push.errors.__all__)


@pytest.mark.parametrize("error", API_ERRORS.values(), ids=lambda error: error.__name__)
def test_an_error_of_the_api_has_its_status_and_code(error: type[ApiError]) -> None:
    (row,) = [row for row in rows("docs/errors.md") if row[0] == f"`{error.__name__}`"]
    assert row[1:3] == [str(error.http_status), f"`{error.code}`"]


def test_every_public_name_is_in_the_documentation() -> None:
    everything = "".join(TEXT.values())
    assert [name for name in aiki_push.__all__ if not re.search(rf"\b{name}\b", everything)] == []


def test_every_outcome_of_a_push_is_explained() -> None:
    outcomes = set(get_args(Outcome)) - {"already_claimed", "not_queued", "unsettled"}
    assert outcomes - first_cells("docs/endpoints.md") == set()


def test_every_status_and_every_reason_for_a_stall_is_named() -> None:
    page = TEXT["docs/operating.md"]
    assert [name for name in (*STATUSES, *get_args(StalledReason)) if f"`{name}`" not in page] == []


@pytest.mark.parametrize("page", TEXT)
def test_every_link_leads_somewhere(page: str) -> None:
    lost = []
    for file, anchor in LINK.findall(TEXT[page]):
        target = (ROOT / page).parent.joinpath(file).resolve() if file else ROOT / page
        name = target.relative_to(ROOT).as_posix()
        if not target.exists() or (anchor and anchor not in anchors(name)):
            lost.append(f"{file}#{anchor}")
    assert lost == []


def test_every_page_can_be_reached_from_the_readme() -> None:
    reached: set[Path] = set()
    waiting = [ROOT / "README.md"]
    while waiting:
        page = waiting.pop()
        if page not in reached and page.suffix == ".md" and page.exists():
            reached.add(page)
            waiting += [page.parent.joinpath(file).resolve() for file, _ in LINK.findall(page.read_text("utf-8")) if file]
    assert set(PAGES) - reached == set()
