"""How long runs take, in virtual hours."""

from typing import TypeVar

from aiki_push import WorkflowVersion
from aiki_push.testing import Harness

HOUR_MS = 3_600_000

T = TypeVar("T")


async def hours_of(harness: Harness, version: WorkflowVersion[[], T]) -> tuple[T, float]:
    """What a run returns, and how many hours it took."""
    began_at = harness.now
    handle = await version.start(harness.client)
    finished = await handle.wait()
    return finished.value(), (harness.now - began_at) / HOUR_MS
