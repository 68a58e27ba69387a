"""Executors that hear of their runs what a test tells them."""

from collections.abc import Awaitable, Callable
from typing import Any

from aiki_push import Run, WorkflowVersion, event, fixed, workflow
from aiki_push.domain.values import RunId
from aiki_push.ports.api.claims import GetInbox, Inbox
from aiki_push.ports.api.events import SendEvent
from aiki_push.sdk.executor import Executor, ExecutorConfig
from aiki_push.sdk.registry import Registry
from aiki_push.sdk.replay.claim_keeper import ClaimKeeper
from tests.local_system import NAMESPACE, LocalSystem

go = event("go", int)


def version_of(body: Callable[[Run], Awaitable[Any]]) -> WorkflowVersion[[], Any]:
    @workflow("listening").v("1", retry=fixed(max_attempts=2, delay_ms=1_000))
    async def listening(run: Run) -> Any:
        return await body(run)

    return listening


class Teller(ClaimKeeper):
    """A keeper that asks for nothing, and tells what it is given to tell."""

    last: "Teller | None" = None

    def start(self) -> None:
        Teller.last = self

    def tell(self, *messages: object, **fields: object) -> None:
        whole = self.news().model_dump() | {"messages": messages} | fields
        self._on_news(Inbox.model_validate(whole))

    def news(self) -> Inbox:
        return Inbox(messages=(), inbox_seq=0, status="running", revision=self._claimed.run.revision)

    def lose(self) -> None:
        self._lose("the test says so")


def keeper() -> Teller:
    """That of the latest claim."""
    assert Teller.last is not None
    return Teller.last


def executor_of(system: LocalSystem, version: WorkflowVersion[[], Any]) -> Executor:
    return Executor(system.client(), Registry([version]), config=ExecutorConfig(), name="executor", keeper=Teller)


def send(system: LocalSystem, run_id: RunId, *numbers: int) -> tuple[object, ...]:
    """Send these with `go`; the run's whole inbox then."""
    for number in numbers:
        system.server.call(NAMESPACE, SendEvent(run_id=run_id, event="go", data=number))
    return system.server.call(NAMESPACE, GetInbox(run_id=run_id, after=0)).messages
