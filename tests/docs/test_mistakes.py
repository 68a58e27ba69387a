"""`docs/mistakes.md` shows the sentences that the mistakes get."""

import asyncio
import inspect
import re
from collections.abc import Awaitable

import pytest

from tests.architecture.source_files import ROOT
from tests.docs.mistaken_code import Mistake, Recorded
from tests.docs.mistakes import MISTAKES, SILENT

PAGE = ROOT / "docs/mistakes.md"

ROW = re.compile(r"^\| (.+?) \| `(\w+)` \| (.+) \|$", re.M)

SILENTLY = "Said by nobody"
"""The section of the mistakes without a message."""


def sections() -> dict[str, list[tuple[str, str, str]]]:
    """The rows of the page's tables, by the heading above them."""
    parts = re.split(r"^## (.+)$", PAGE.read_text("utf-8"), flags=re.M)[1:]
    texts = dict(zip(parts[::2], parts[1::2], strict=True))
    return {title: ROW.findall(text) for title, text in texts.items() if title != SILENTLY}


def what_it_gets(mistake: Mistake) -> Recorded:
    """The error that the mistake raises, or that its run fails or stalls with."""

    async def awaited(given: Awaitable[object]) -> object:
        return await given

    try:
        given = mistake()
        ended = asyncio.run(awaited(given)) if inspect.isawaitable(given) else given
    except Exception as error:
        return Recorded(type(error).__name__, str(error))
    assert isinstance(ended, Recorded)
    return ended


def row_of(name: str, mistake: Mistake) -> tuple[str, str, str]:
    """The row for it: ids, hashes of inputs and lines of files stand for any."""
    got = what_it_gets(mistake)
    message = re.sub(r"\b[0-7][0-9A-HJKMNP-TV-Z]{25}\b", "01M8MER5BZSFP81HXYFC8VWCSD", got.message)
    message = re.sub(r"\b(call \d with its input), [0-9a-f]{8}\b", r"\1, 5df6e0e2", message)
    message = re.sub(r"\b(mistaken_code|mistaken_waits|workflow)\.py:\d+", "orders.py:12", message).replace("\n", " ")
    code = f"`` {message} ``" if "`" in message else f"`{message}`"
    return name, got.error, code.replace("|", "\\|")


@pytest.mark.parametrize(
    ("section", "name"), [(section, name) for section, mistakes in MISTAKES.items() for name in mistakes], ids=lambda text: text
)
def test_the_page_shows_what_a_mistake_gets(section: str, name: str) -> None:
    assert row_of(name, MISTAKES[section][name]) in sections()[section]


def test_every_row_of_the_page_is_a_mistake_that_is_made_here() -> None:
    shown = {section: [name for name, _, _ in rows] for section, rows in sections().items()}
    assert shown == {section: list(mistakes) for section, mistakes in MISTAKES.items()}


def test_the_page_names_the_mistakes_that_nobody_mentions() -> None:
    text = PAGE.read_text("utf-8").partition(f"## {SILENTLY}\n")[2]
    assert re.findall(r"^\| (.+?) \| .+ \| .+ \|$", text, re.M)[1:] == list(SILENT)


@pytest.mark.parametrize("name", SILENT)
def test_a_mistake_that_nobody_mentions_does_what_it_does(name: str) -> None:
    mistake, output = SILENT[name]
    assert what_it_gets(mistake) == Recorded("completed", output)
