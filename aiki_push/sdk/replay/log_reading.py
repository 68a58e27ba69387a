"""Reading a claimed run whole: the pages of its log, and the values that are too large for it."""

import asyncio
from collections.abc import Callable, Iterable

from aiki_push.domain.log_records import AnyRecord, LogSlot, TaskCompleted
from aiki_push.domain.values import Inline, Json, PayloadReference, RunId, StoredValue
from aiki_push.ports.api.claims import Claimed, GetLog
from aiki_push.ports.api.operation import Api
from aiki_push.ports.api.runs import GetPayload
from aiki_push.sdk.replay.memory import Memory

MAX_FETCHES = 8
"""Payloads fetched side by side."""


async def read_memory(api: Api, claimed: Claimed) -> tuple[Memory, Callable[[StoredValue], Json]]:
    """What the log says, and a way to the values in it. Raises ServerUnreachable, ApiError."""
    slots = await _whole_log(api, claimed)
    records = [*(record for slot in slots for record in slot.records), *claimed.tail.records]
    memory = Memory.of(records)
    fetched = await _fetch(api, claimed.run.id, _references(memory, records))
    return memory, lambda value: value.value if isinstance(value, Inline) else fetched[value.sha256]


async def _whole_log(api: Api, claimed: Claimed) -> list[LogSlot]:
    slots = list(claimed.slots)
    is_complete = claimed.log_is_complete
    while not is_complete:
        page = await api.call(GetLog(run_id=claimed.run.id, after=slots[-1].position if slots else -1))
        slots += page.slots
        is_complete = page.is_last
    return slots


def _references(memory: Memory, records: Iterable[AnyRecord]) -> set[str]:
    values = [memory.input, *(record.output for record in records if isinstance(record, TaskCompleted))]
    return {value.sha256 for value in values if isinstance(value, PayloadReference)}


async def _fetch(api: Api, run_id: RunId, digests: set[str]) -> dict[str, Json]:
    places = asyncio.Semaphore(MAX_FETCHES)

    async def fetch(sha256: str) -> Json:
        async with places:
            return (await api.call(GetPayload(run_id=run_id, sha256=sha256))).value

    ordered = sorted(digests)
    return dict(zip(ordered, await asyncio.gather(*map(fetch, ordered)), strict=True))
