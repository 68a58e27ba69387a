"""What becomes of a run to which something happens while its executor writes how the segment ended."""

from collections.abc import Awaitable, Callable, Sequence
from datetime import timedelta
from typing import Any

import pytest

from aiki_push import Run
from aiki_push.adapters.storage.memory.table import MemoryTable
from aiki_push.adapters.storage.table import Write
from aiki_push.domain.controls import decide_directive
from aiki_push.domain.log_records import Received
from aiki_push.domain.run import Directive
from aiki_push.domain.run import Run as Header
from aiki_push.domain.values import RunId
from aiki_push.ports.api.controls import ResumeRun
from aiki_push.testing import FakeClock, FaultyTable
from tests.integration.interruptions import leave_alone
from tests.integration.told_executors import executor_of, go, keeper, send, version_of
from tests.local_system import NAMESPACE, LocalSystem


async def complete(run: Run) -> str:
    return "done"


async def fail(run: Run) -> None:
    raise ValueError("no luck")


async def park(run: Run) -> None:
    await go.wait(run)


async def stall(run: Run) -> None:
    run.calls.cannot_restore("it does not fit")


class Scene:
    """A run whose executor is about to write how its segment ended; before that, or after it, something else is done to the run."""

    def __init__(self, body: Callable[[Run], Awaitable[Any]]) -> None:
        self.clock = FakeClock()
        self.table = FaultyTable(MemoryTable())
        self.system = LocalSystem(self.table, clock=self.clock)
        self.version = version_of(body)
        self.is_interrupted = False

    async def start(self) -> RunId:
        return RunId((await self.version.start(self.system.client())).id)

    async def execute(self, run_id: RunId, meanwhile: Callable[[], None], *, is_before: bool = True) -> str:
        def hook(writes: Sequence[Write]) -> None:
            # The claim is the only write before the last one.
            if self.system.run(run_id).state.status == "running" or not is_before:
                leave_alone(self.table)
                self.is_interrupted = True
                meanwhile()

        executor = executor_of(self.system, self.version)
        if is_before:
            self.table.before_write = hook
        else:
            self.table.before_write = lambda _: setattr(
                self.table, "after_write", hook if self.system.run(run_id).state.status == "running" else lambda _: None
            )
        outcome = (await executor.execute(run_id, revision=None)).outcome
        assert self.is_interrupted
        return outcome

    def direct(self, run_id: RunId, action: Any) -> Header:
        """What an owner that is too fast is told."""
        directive = Directive(action=action, operation_id=f"{action}-1")
        self.system.context.commit(decide_directive(self.system.run(run_id), directive))
        return self.system.run(run_id)


@pytest.mark.parametrize(
    ("body", "action", "outcome", "status"),
    [
        (complete, "pause", "completed", "completed"),
        (complete, "cancel", "completed", "completed"),
        (fail, "pause", "stopped", "paused"),
        (fail, "cancel", "stopped", "cancelled"),
        (park, "pause", "stopped", "paused"),
        (park, "cancel", "stopped", "cancelled"),
        (stall, "pause", "stalled", "stalled"),
        (stall, "cancel", "stopped", "cancelled"),
    ],
)
async def test_a_directive_that_comes_while_the_end_is_being_written_is_obeyed_in_the_same_write(
    body: Callable[[Run], Awaitable[Any]], action: str, outcome: str, status: str
) -> None:
    scene = Scene(body)
    run_id = await scene.start()

    def meanwhile() -> None:
        scene.direct(run_id, action)
        keeper().tell(directive=Directive(action=action, operation_id=f"{action}-1"))

    assert await scene.execute(run_id, meanwhile) == outcome
    run = scene.system.run(run_id)
    assert (run.state.status, run.directive) == (status, None)


async def test_a_park_that_was_paused_goes_on_with_its_event_once_it_is_resumed() -> None:
    async def body(run: Run) -> int:
        return (await go.wait(run, timeout=timedelta(hours=1))).data  # type: ignore[union-attr]  # it is not late

    scene = Scene(body)
    run_id = await scene.start()
    assert await scene.execute(run_id, lambda: (scene.direct(run_id, "pause"), None)[1]) == "stopped"
    send(scene.system, run_id, 7)
    assert scene.system.run(run_id).state.status == "paused"
    scene.system.server.call(NAMESPACE, ResumeRun(run_id=run_id, operation_id="resume-1"))
    assert await scene.execute(run_id, lambda: None) == "completed"


@pytest.mark.parametrize(("body", "outcome"), [(complete, "completed"), (park, "parked"), (fail, "retrying")])
async def test_a_claim_that_seems_lost_because_the_segment_has_just_ended_is_no_loss(
    body: Callable[[Run], Awaitable[Any]], outcome: str
) -> None:
    scene = Scene(body)
    run_id = await scene.start()
    assert await scene.execute(run_id, lambda: keeper().lose(), is_before=False) == outcome


async def test_a_message_and_a_directive_that_come_before_a_park_hand_the_run_over_with_the_message_in_its_inbox() -> None:
    scene = Scene(park)
    run_id = await scene.start()

    def meanwhile() -> None:
        send(scene.system, run_id, 7)
        scene.direct(run_id, "pause")
        keeper().tell(directive=Directive(action="pause", operation_id="pause-1"))

    # The park is refused because of the message, which ends the workflow; and an end wins over a pause.
    assert await scene.execute(run_id, meanwhile) == "completed"
    assert [one.seq for one in scene.system.records(run_id) if isinstance(one, Received)] == [1]
