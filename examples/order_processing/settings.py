"""What the example's tasks read from their environment, at each call."""

import os
from pathlib import Path


def effects_folder() -> Path:
    """Where tasks leave their effects: ORDERS_FOLDER, by default `.aiki/orders` below the current folder."""
    return Path(os.environ.get("ORDERS_FOLDER") or ".aiki/orders")


def ledger_file() -> Path:
    """The ledger's database."""
    return effects_folder() / "ledger.sqlite"


def invoices_folder() -> Path:
    """One file for each invoice."""
    return effects_folder() / "invoices"


def work_s() -> float:
    """How long each task pretends to work, in seconds: ORDERS_WORK_MS milliseconds, by default 20."""
    return float(os.environ.get("ORDERS_WORK_MS") or 20) / 1_000
