"""Saying how the code and the log differ, so that whoever reads it can find the change that did it."""

from collections.abc import Iterable
from typing import Protocol

SHOWN = 10


class Titled(Protocol):
    """A call, made or recorded."""

    @property
    def title(self) -> str:
        """What it is called in messages. Inputs are not shown."""
        ...


def explain(new: Iterable[Titled], unasked: Iterable[Titled]) -> str:
    """One paragraph that names the calls which the code makes now and those which only the log has."""
    return (
        f"the code has diverged from what this run did before: it now calls {_listed(new)}, which the log does not have, "
        f"and did not call {_listed(unasked)}, which the log has. Nothing new was run. "
        "Deploy code that makes the recorded calls again, or the earlier code, and requeue the run; or give changed code a new version"
    )


def _listed(calls: Iterable[Titled]) -> str:
    names = [call.title for call in calls]
    rest = len(names) - SHOWN
    return ", ".join(names[:SHOWN]) + (f" and {rest} more" if rest > 0 else "")
