"""An API that answers a start with a run and remembers what it was asked."""

from typing import Any, TypeVar, cast

from aiki_push.adapters.system import SystemEntropy
from aiki_push.domain.run import RunOptions
from aiki_push.domain.run_states import AnyState, Queued
from aiki_push.domain.values import RunId, TimestampMs
from aiki_push.ports.api.operation import Operation
from aiki_push.ports.api.runs import RunView, StartRun
from aiki_push.sdk.client import Client
from aiki_push.testing import FakeClock

R = TypeVar("R")


class RecordingApi:
    """Answers every operation with a run in `state`, queued by default."""

    def __init__(self, state: AnyState | None = None) -> None:
        self.state: AnyState = state or Queued(reason="new")
        self.called: list[Operation[Any]] = []

    async def call(self, operation: Operation[R]) -> R:
        self.called.append(operation)
        return cast(R, view(self.state))

    async def close(self) -> None:
        return None

    def client(self) -> Client:
        return Client(lambda: self, clock=FakeClock(), entropy=SystemEntropy())

    @property
    def sent(self) -> dict[str, Any]:
        """The only start that was asked for, without its id: only what was set."""
        [start] = self.called
        assert isinstance(start, StartRun)
        return start.model_dump(exclude_unset=True, exclude={"run_id"})


def view(state: AnyState) -> RunView:
    """A run in `state`."""
    return RunView(
        id=RunId("01M8MER5BZSFP81HXYFC8VWCSD"),
        workflow="order-processing",
        version="1.0.0",
        state=state,
        revision=0,
        attempts=1,
        options=RunOptions(),
        created_at=TimestampMs(0),
    )
