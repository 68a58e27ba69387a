"""The names that authors give."""

import re

from aiki_push.domain.errors import SettingsError
from aiki_push.domain.values import NAME_PATTERN


def check_name(name: str, *, what: str) -> None:
    """Raises SettingsError unless `name` is 1 to 128 letters, digits, or `.`, `_`, `:`, `-`."""
    if not isinstance(name, str) or not re.fullmatch(NAME_PATTERN, name):
        raise SettingsError(f"{name!r} cannot name a {what}: use 1 to 128 letters, digits, and . _ : -")
