"""What the example reads from its environment. A function looks when it is called, and raises SettingsError for a wrong value."""

import os
from pathlib import Path

from aiki_push.errors import SettingsError


def effects_folder() -> Path:
    """ORDERS_FOLDER: where tasks leave their effects; by default `.aiki/orders` below the current folder."""
    return Path(os.environ.get("ORDERS_FOLDER") or ".aiki/orders")


def ledger_file() -> Path:
    """The ledger's database."""
    return effects_folder() / "ledger.sqlite"


def invoices_folder() -> Path:
    """A file for each invoice."""
    return effects_folder() / "invoices"


def work_s() -> float:
    """ORDERS_WORK_MS, by default 20: how long each task pretends to work. Here it is in seconds."""
    return whole_number("ORDERS_WORK_MS", default=20, at_most=600_000) / 1_000


def text(name: str) -> str:
    """A variable that must be there."""
    value = os.environ.get(name, "").strip()
    if not value:
        raise SettingsError(f"{name} is missing")
    return value


def whole_number(name: str, *, default: int, at_most: int, at_least: int = 0) -> int:
    """A variable that is a number within these bounds."""
    value = os.environ.get(name) or str(default)
    if not (value.isascii() and value.isdecimal() and at_least <= int(value) <= at_most):
        raise SettingsError(f"{name} is {value!r}; it should be a whole number from {at_least} to {at_most}")
    return int(value)
