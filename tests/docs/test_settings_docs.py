"""`docs/settings.md` lists the settings that there are, as they are."""

import re

from aiki_push.apps.environment import Setting, settings_of
from aiki_push.apps.settings import ServerSettings
from tests.architecture.source_files import ROOT

PAGE = (ROOT / "docs/settings.md").read_text("utf-8")

SETTINGS = settings_of(ServerSettings)


def row(setting: Setting) -> str:
    default = "required" if setting.is_required else f"`{setting.default}`" if setting.default is not None else "–"
    return f"| `{setting.name}` | {default} | {setting.meaning} | {setting.expected} |"


def test_every_setting_has_its_row_in_the_order_of_the_code() -> None:
    assert re.findall(r"^\| `AIKI_.*\|$", PAGE, re.M) == [row(setting) for setting in SETTINGS.values()]


def test_every_variable_that_the_page_names_is_a_setting() -> None:
    assert set(re.findall(r"AIKI_[A-Z0-9_]*[A-Z0-9]", PAGE)) - SETTINGS.keys() == set()
