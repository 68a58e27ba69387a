"""The names that authors give."""

import re

from aiki_push.domain.errors import SettingsError
from aiki_push.domain.values import NAME_PATTERN

NAMES_ARE = "1 to 128 letters, digits, and . _ : -"


def is_name(name: object) -> bool:
    """Whether this may name a workflow, version, task or pool."""
    return isinstance(name, str) and re.fullmatch(NAME_PATTERN, name) is not None


def check_name(name: object, *, what: str) -> None:
    """Raises SettingsError unless `name` is 1 to 128 letters, digits, or `.`, `_`, `:`, `-`."""
    if not is_name(name):
        article = "an" if what[0] in "aeiou" else "a"
        raise SettingsError(f"{name!r} cannot name {article} {what}: use {NAMES_ARE}")
