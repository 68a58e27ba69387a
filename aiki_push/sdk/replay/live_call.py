"""One call of the workflow on another run in this segment."""

import asyncio
from dataclasses import dataclass

from aiki_push.domain.log_records import CallEnded
from aiki_push.ports.api.calls import Call, StartChild


@dataclass(slots=True, eq=False)
class LiveCall:
    """A call that the log does not know yet."""

    request: Call
    future: asyncio.Future[CallEnded]

    @property
    def title(self) -> str:
        """What it is called in messages."""
        if isinstance(self.request, StartChild):
            return f"child {self.request.workflow} {self.request.version}"
        return f"{self.request.kind} (run {self.request.run_id})"
