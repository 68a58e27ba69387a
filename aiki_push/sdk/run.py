"""The run, as its workflow sees it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

from aiki_push.domain.run import RunOptions
from aiki_push.domain.values import RunId
from aiki_push.sdk.calls import Calls
from aiki_push.sdk.logger import WORKFLOW_LOGGER, RunLogger


@dataclass(frozen=True, slots=True)
class RunInfo:
    """The facts of a run: what a client's context factory is given. They are the same on every replay."""

    id: RunId
    workflow: str
    version: str
    attempt: int
    options: RunOptions


ContextFactory: TypeAlias = Callable[[RunInfo], object]
"""Makes `run.context`. An awaitable is awaited."""


class Run:
    """Handed to every workflow. Its facts are the same on every replay.

    `context` is what the client's context factory made for this execution, or None. `logger` is silent while the run replays.
    """

    context: Any

    def __init__(self, info: RunInfo, calls: Calls, context: object = None) -> None:
        self.id = info.id
        self.workflow = info.workflow
        self.version = info.version
        self.attempt = info.attempt
        self.options = info.options
        self.context = context
        facts = {
            "aiki.run_id": info.id,
            "aiki.workflow": info.workflow,
            "aiki.version": info.version,
            "aiki.attempt": info.attempt,
        }
        self.logger = RunLogger(WORKFLOW_LOGGER, facts, lambda: calls.is_replaying)
        self._calls = calls

    def __repr__(self) -> str:
        return f"Run({self.id}, {self.workflow} {self.version})"

    @property
    def calls(self) -> Calls:
        """Where durable calls go; for tasks, not for workflows."""
        return self._calls

    @property
    def suspending(self) -> bool:
        """True while `finally` blocks run only because the run goes on later or elsewhere. Real clean-up belongs in a task."""
        return self._calls.is_dropping
