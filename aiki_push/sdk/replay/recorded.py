"""What a log says of one call or wait, and the keys by which the code finds it again."""

from dataclasses import dataclass
from typing import TypeAlias

from aiki_push.domain.ids import join_key
from aiki_push.domain.log_records import CallEnded, Received, TaskBackingOff, TaskCompleted, TaskFailed, WaitEnded
from aiki_push.domain.values import TimestampMs
from aiki_push.domain.waits import WaitKind

CallKey: TypeAlias = tuple[str, int]
"""A call's content, and which of the calls with that content it is, from 0."""

WaitKey: TypeAlias = tuple[WaitKind, str, int]
"""What a wait is for, and which of the waits for that it is."""


def task_key(name: str, input_hash: str) -> str:
    """The content of a task's call: its name and its input, wherever in the code it stands."""
    return join_key("task", name, input_hash)


def timer_key(branch: str) -> str:
    """The key of a branch's timers, which are told apart by their ordinals."""
    return join_key("timer", branch)


@dataclass(slots=True)
class RecordedTask:
    """One call of a task, as far as it got.

    `outcome` is its end, `outcome_index` where in the log that stands. `is_open`: an execution began and its outcome is not recorded.
    `is_required`: the present workflow attempt made this call, so its code must make it again.
    `interruptions` counts executions that were cut off by a crash or the end of an invocation; they use no attempt.
    """

    task_id: str
    name: str
    attempt: int
    is_open: bool = True
    is_required: bool = True
    is_cancelled: bool = False
    interruptions: int = 0
    backing_off: TaskBackingOff | None = None
    outcome: TaskCompleted | TaskFailed | None = None
    outcome_index: int = -1

    @property
    def title(self) -> str:
        """What it is called in messages."""
        return f"{self.name} (task {self.task_id})"

    def restart(self) -> None:
        """Forget how far it got: under its old id it begins again with attempt 1. An execution of which nobody knows the end stays open."""
        self.attempt, self.interruptions, self.is_cancelled = 1, 0, False
        self.backing_off = self.outcome = None
        self.outcome_index = -1


@dataclass(slots=True)
class RecordedCall:
    """A call on another run: it has its outcome, which stands at `index` in the log. `is_required` as that of a task."""

    outcome: CallEnded
    index: int
    is_required: bool = True

    @property
    def title(self) -> str:
        """What it is called in messages."""
        return " ".join(filter(None, (self.outcome.kind, self.outcome.name, f"(run {self.outcome.run_id})")))


@dataclass(slots=True)
class RecordedWait:
    """A timer, a sleep, or a wait for an event or a child: its deadline, and where in the log its end stands, if it ended."""

    deadline_at: TimestampMs | None = None
    ended: WaitEnded | Received | None = None
    ended_index: int = -1
