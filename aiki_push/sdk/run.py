"""The run, as its workflow sees it."""

from aiki_push.domain.run import RunOptions
from aiki_push.domain.values import RunId
from aiki_push.sdk.calls import Calls


class Run:
    """Handed to every workflow. Its facts are the same on every replay."""

    def __init__(self, run_id: RunId, workflow: str, version: str, attempt: int, options: RunOptions, calls: Calls) -> None:
        self.id = run_id
        self.workflow = workflow
        self.version = version
        self.attempt = attempt
        self.options = options
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
