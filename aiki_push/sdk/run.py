"""The run, as its workflow sees it."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, TypeAlias
from uuid import UUID

from aiki_push.domain.durations import duration_ms
from aiki_push.domain.run import RunOptions
from aiki_push.domain.values import RunId
from aiki_push.sdk.calls import Calls, WaitCall
from aiki_push.sdk.logger import WORKFLOW_LOGGER, RunLogger
from aiki_push.sdk.names import check_name
from aiki_push.sdk.peer import Peer, check_run_id
from aiki_push.sdk.results import Slept


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

    async def sleep(self, name: str, duration: timedelta) -> Slept:
        """Wait for `duration`, or until somebody wakes up the sleeps of this name. No process is used meanwhile.

        The n-th sleep of a name is the same one on every replay. Where changed code gives it another duration, that counts from when
        it began. Raises SettingsError (a wrong name, a duration that is no length of time).
        """
        check_name(name, what="sleep")
        length = duration_ms(duration, name=f"{name}: duration")
        return Slept(woken_early=await self._calls.wait(WaitCall("sleep", name, length)) is not None)

    def now(self) -> datetime:
        """The workflow's time, in UTC: that of the latest thing it was given, the same on every replay."""
        return datetime.fromtimestamp(self._calls.now_at / 1_000, UTC)

    def uuid(self) -> UUID:
        """A UUID (version 4) that is the same on every replay of this attempt."""
        return UUID(bytes=self._calls.draw(), version=4)

    def random(self) -> float:
        """A number from [0, 1) that is the same on every replay of this attempt."""
        return (int.from_bytes(self._calls.draw()[:7], "big") >> 3) / 2**53  # as many bits as a float holds: more may round to 1

    def peer(self, run_id: str) -> Peer:
        """Another run, to send events to and to control. Raises SettingsError for what is no run id."""
        return Peer(self._calls, check_run_id(run_id, "run.peer: run_id"))

    @property
    def calls(self) -> Calls:
        """Where durable calls go; for tasks, not for workflows."""
        return self._calls

    @property
    def suspending(self) -> bool:
        """True while `finally` blocks run only because the run goes on later or elsewhere. Real clean-up belongs in a task."""
        return self._calls.is_dropping
