"""What durable code asks of whoever executes it."""

from collections.abc import Awaitable, Callable
from contextvars import Context
from dataclasses import dataclass
from typing import Literal, Protocol

from aiki_push.domain.retry import RetryStrategy
from aiki_push.domain.values import Inline, Json

Interrupted = Literal["retry", "fail"]
"""What happens to a task whose execution was cut off, so that nobody knows whether its effect took place."""


@dataclass(frozen=True, slots=True, eq=False)
class TaskCall:
    """One call of a task. `input` is None where it takes none.

    `invoke` calls the author's handler in the given context; where the handler is a plain function it is called in a thread.
    `encode` turns what it returned into JSON that restores to the same value. Raises NotSerializable.
    """

    name: str
    input: Inline | None
    input_hash: str
    is_coroutine: bool
    invoke: Callable[[], object]
    encode: Callable[[object], Json]
    retry: RetryStrategy
    interrupted: Interrupted
    context: Context


class Calls(Protocol):
    """The execution of one run, as its durable calls see it. Used on the workflow's own event loop only."""

    def call_task(self, call: TaskCall) -> Awaitable[Json]:
        """The task's recorded or fresh output. Awaiting it raises what the record holds, first time and on replay alike."""
        ...

    def cannot_restore(self, reason: str) -> None:
        """A recorded value does not fit the code's type any more: the run stalls, whatever the workflow does next."""
        ...

    @property
    def is_dropping(self) -> bool:
        """Whether the workflow's branches are being closed, because the run goes on later or elsewhere."""
        ...

    @property
    def is_replaying(self) -> bool:
        """Whether what the workflow does now, it has done before or does for nobody: it is being replayed, or closed."""
        ...
