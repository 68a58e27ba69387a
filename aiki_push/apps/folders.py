"""Folders that a process needs."""

from pathlib import Path

from aiki_push.domain.errors import SettingsError


def make_folder(folder: Path) -> None:
    """Make `folder` and those above it, as far as they are missing. Raises SettingsError: one cannot be made."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise SettingsError(f"the folder {folder} cannot be made ({error.strerror}); choose another") from error
