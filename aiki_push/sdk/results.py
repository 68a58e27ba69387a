"""How a run ended, or that it has not ended yet."""

from dataclasses import dataclass
from typing import Generic, TypeVar

from aiki_push.domain.log_records import RecordedError
from aiki_push.domain.run_states import Cause
from aiki_push.sdk.failures import ChildFailed, RunFailed

O_co = TypeVar("O_co", covariant=True)
T_co = TypeVar("T_co", covariant=True)


@dataclass(frozen=True, slots=True)
class Completed(Generic[O_co]):
    """The workflow returned `output`."""

    output: O_co
    status: str = "completed"


@dataclass(frozen=True, slots=True)
class Failed:
    """The workflow ended by `error`; `cause` says where it came from."""

    cause: Cause
    error: RecordedError
    status: str = "failed"


@dataclass(frozen=True, slots=True)
class Cancelled:
    """The run was cancelled from outside."""

    explanation: str | None = None
    status: str = "cancelled"


@dataclass(frozen=True, slots=True)
class Finished(Generic[O_co]):
    """The run ended in `state`. `is_child`: it was waited for by a workflow."""

    run_id: str
    state: Completed[O_co] | Failed | Cancelled
    is_child: bool = False

    def value(self) -> O_co:
        """The output of a completed run. Raises RunFailed otherwise; in a workflow, for a child, ChildFailed."""
        if isinstance(self.state, Completed):
            return self.state.output
        error = self.state.error if isinstance(self.state, Failed) else None
        raise (ChildFailed if self.is_child else RunFailed)(self.run_id, self.state.status, error)


@dataclass(frozen=True, slots=True)
class Received(Generic[T_co]):
    """An event arrived, with this `data`."""

    data: T_co


@dataclass(frozen=True, slots=True)
class Slept:
    """A sleep is over: because its time passed, or because somebody woke it up early."""

    woken_early: bool


@dataclass(frozen=True, slots=True)
class TimedOut:
    """The time was up before what was waited for."""
