"""What can happen to a server at any place of what it does, as hooks of a FaultyTable."""

from collections.abc import Callable

from aiki_push.domain.errors import StorageUnavailable
from aiki_push.testing import FaultyTable

Hook = Callable[[object], None]


class Killed(Exception):
    """The process ends here."""


def kill(_: object) -> None:
    raise Killed


def lose(_: object) -> None:
    raise StorageUnavailable("nothing was heard of the table")


def nothing(_: object) -> None:
    pass


def nth(number: int, action: Hook) -> Hook:
    """A hook that does `action` when it is called for the `number`th time; 1 is the first."""
    calls = 0

    def hook(found: object) -> None:
        nonlocal calls
        calls += 1
        if calls == number:
            action(found)

    return hook


def meet(table: FaultyTable, hook: Hook) -> None:
    """Call `hook` before every read and write."""
    table.before_read = table.before_write = hook


def leave_alone(table: FaultyTable) -> None:
    """Set no hooks."""
    table.before_read = table.before_write = table.after_write = nothing
