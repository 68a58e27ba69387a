"""The values of a run, wherever they are stored."""

import asyncio
from collections.abc import Iterable

from aiki_push.domain.values import Inline, Json, PayloadReference, RunId, StoredValue
from aiki_push.ports.api.runs import GetPayload
from aiki_push.sdk.replay.journal import Journal

MAX_FETCHES = 8
"""Payloads fetched side by side."""


class Values:
    """Gives the content of stored values; those that are not inline are fetched first."""

    def __init__(self, journal: Journal, run_id: RunId) -> None:
        self._journal = journal
        self._run_id = run_id
        self._fetched: dict[str, Json] = {}

    def __call__(self, value: StoredValue) -> Json:
        """The content of `value`, which is inline or was fetched."""
        return value.value if isinstance(value, Inline) else self._fetched[value.sha256]

    async def fetch(self, values: Iterable[StoredValue | None]) -> None:
        """Fetch what is not here yet. Raises LostRun, AbandonedSegment."""
        wanted = {value.sha256 for value in values if isinstance(value, PayloadReference)} - self._fetched.keys()
        places = asyncio.Semaphore(MAX_FETCHES)

        async def fetch(sha256: str) -> Json:
            async with places:
                return (await self._journal.ask(GetPayload(run_id=self._run_id, sha256=sha256))).value

        ordered = sorted(wanted)
        self._fetched |= zip(ordered, await asyncio.gather(*map(fetch, ordered)), strict=True)
