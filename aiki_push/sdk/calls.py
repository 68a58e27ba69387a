"""What durable code asks of whoever executes it."""

from collections.abc import Awaitable, Callable
from contextvars import Context
from dataclasses import dataclass
from typing import Literal, Protocol

from aiki_push.domain.inbox import Message
from aiki_push.domain.log_records import CallEnded
from aiki_push.domain.retry import RetryStrategy
from aiki_push.domain.values import DurationMs, Inline, Json, StoredValue, TimestampMs
from aiki_push.ports.api.calls import Call

Interrupted = Literal["retry", "fail"]
"""What happens to a task whose execution was cut off, so that nobody knows whether its effect took place."""


@dataclass(frozen=True, slots=True, eq=False)
class TaskCall:
    """One call of a task. `input` is None where it takes none.

    `invoke` calls the author's handler in the given context; where the handler is a plain function it is called in a thread.
    `encode` turns what it returned into JSON that restores to the same value. Raises NotSerializable.
    `expected_ms` is how long the author expects an execution to take.
    """

    name: str
    input: Inline | None
    input_hash: str
    is_coroutine: bool
    invoke: Callable[[], object]
    encode: Callable[[object], Json]
    retry: RetryStrategy
    interrupted: Interrupted
    expected_ms: DurationMs | None
    context: Context


@dataclass(frozen=True, slots=True)
class WaitCall:
    """A wait for an event (`key` is its name), for the end of a run (its id), or a sleep (its name), for `duration_ms` at most."""

    kind: Literal["event", "child", "sleep"]
    key: str
    duration_ms: DurationMs | None = None


@dataclass(frozen=True, slots=True, eq=False)
class RunCall:
    """A call on another run. `content` is what tells it from others; `request` makes it, given its ordinal and an id of its own."""

    content: str
    request: Callable[[int, str], Call]


class Calls(Protocol):
    """The execution of one run, as its durable calls see it. Used on the workflow's own event loop only."""

    def call_task(self, call: TaskCall) -> Awaitable[Json]:
        """The task's recorded or fresh output. Awaiting it raises what the record holds, first time and on replay alike."""
        ...

    def call_run(self, call: RunCall) -> Awaitable[CallEnded]:
        """What became of the call on another run. Awaiting it raises nothing: a refusal is in the record."""
        ...

    def wait(self, call: WaitCall) -> Awaitable[Message | None]:
        """The message that ended the wait; None where the time passed first."""
        ...

    def value_of(self, stored: StoredValue, /) -> Json:
        """A value that came with a message that was given."""
        ...

    def cannot_restore(self, reason: str) -> None:
        """A recorded value does not fit the code's type any more: the run stalls, whatever the workflow does next."""
        ...

    @property
    def now_at(self) -> TimestampMs:
        """The workflow's clock: the time of the latest thing it was given, the same on every replay."""
        ...

    def draw(self) -> bytes:
        """16 bytes that look random: the same on every replay of this attempt, and never again in this run."""
        ...

    @property
    def is_dropping(self) -> bool:
        """Whether the workflow's branches are being closed, because the run goes on later or elsewhere."""
        ...

    @property
    def is_replaying(self) -> bool:
        """Whether what the workflow does now, it has done before or does for nobody: it is being replayed, or closed."""
        ...
