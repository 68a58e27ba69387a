"""Workflows that are told things at chosen times, and are replayed once more at their end."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any

from aiki_push import Run, WorkflowVersion, event, workflow
from aiki_push.domain.log_records import Received as ReceivedRecord
from aiki_push.testing import FAKE_NOW, Harness

HOUR = timedelta(hours=1)

go = event("go", int)
stop = event("stop")


def version_of(body: Callable[[Run], Awaitable[Any]]) -> WorkflowVersion[[], Any]:
    @workflow("cornered").v("1")
    async def cornered(run: Run) -> Any:
        return await body(run)

    return cornered


def outcome_of(body: Callable[[Run], Awaitable[Any]], *sent: tuple[float, object], others: tuple[Any, ...] = ()) -> Any:
    """What a run of `body` returns that is sent these at so many seconds after its start: numbers with `go`, None with `stop`.

    The run is replayed once more at its end: what comes out then must be the same.
    """
    outcomes: list[Any] = []

    async def replayed(run: Run) -> Any:
        outcomes.append(await body(run))
        await run.sleep("replay", HOUR)
        return outcomes[-1]

    version = version_of(replayed)
    with Harness(version, *others) as harness:

        async def scenario() -> None:
            handle = await version.start(harness.client)
            for seconds, data in sent:
                await asyncio.sleep((FAKE_NOW - harness.now) / 1_000 + seconds)
                await (stop.send(handle) if data is None else go.send(handle, int(str(data))))
            await handle.wait()
            taken = [one.seq for one in harness.records(handle.id) if isinstance(one, ReceivedRecord) and one.kind == "event"]
            assert len(taken) == len(set(taken))

        harness.run(scenario())
    assert len(outcomes) == 2
    assert outcomes[0] == outcomes[1]
    return outcomes[0]
