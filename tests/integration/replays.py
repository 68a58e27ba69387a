"""Runs that park and are replayed, as often as wanted, in no time."""

from aiki_push.sdk.client import Client
from aiki_push.sdk.executor import Executor, ExecutorConfig
from aiki_push.sdk.registry import Registry
from aiki_push.sdk.run import ContextFactory
from aiki_push.sdk.workflow_version import AnyWorkflowVersion
from aiki_push.testing import FakeClock
from tests.local_system import NAMESPACE, LocalSystem


class Replaying:
    """A system whose clock jumps to the next deadline, and an executor of `versions` that waits for nothing in place."""

    def __init__(self, *versions: AnyWorkflowVersion, context: ContextFactory | None = None) -> None:
        self.clock = FakeClock()
        self.system = LocalSystem(clock=self.clock)
        self.client = Client(self.system.api, clock=self.clock, entropy=self.system.entropy, context=context)
        self.deploy(*versions)

    def deploy(self, *versions: AnyWorkflowVersion) -> None:
        """Execute with these versions from now on."""
        config = ExecutorConfig(max_inline_wait_ms=0)
        self._executor = Executor(self.client, Registry(versions), config=config, name="executor")

    async def execute(self, run_id: str) -> list[str]:
        """Execute the run until it waits for nothing but us; the outcome of each segment."""
        outcomes = [await self.segment(run_id)]
        while outcomes[-1] == "parked":
            outcomes.append(await self.segment(run_id))
        return outcomes

    async def segment(self, run_id: str) -> str:
        """Execute the run once, after whatever it waits for has come; how that ended."""
        due_at = self.system.run(run_id).due_at
        if due_at is not None and due_at > self.clock.now():
            self.clock.advance(due_at - self.clock.now())
            self.system.attention.advance(NAMESPACE, run_id)
        return (await self._executor.execute(run_id, revision=None)).outcome
