"""An inbox that is larger than an answer travels in parts, and nobody notices."""

import asyncio

import pytest

from aiki_push import Run, event, workflow
from aiki_push.adapters.storage.table import Table
from aiki_push.ports.api.claims import Claimed, ClaimRun, GetInbox
from aiki_push.server.claims import MAX_LOG_ANSWER_BYTES
from aiki_push.testing import FakeClock
from tests.local_system import LocalSystem

TEXT = "x" * 30_000
EVENTS = 120

page = event("page", str)


@workflow("reader").v("1")
async def reader(run: Run) -> int:
    got = [await page.wait(run) for _ in range(EVENTS)]
    return sum(len(one.data) for one in got)


@pytest.fixture
def system(table: Table) -> LocalSystem:
    return LocalSystem(table, clock=FakeClock())


async def sent(system: LocalSystem) -> str:
    handle = await reader.start(system.client())
    for number in range(EVENTS):
        await page.send(handle, TEXT[:-3] + f"{number:03d}")
    return handle.id


def test_a_claim_and_the_pages_after_it_hold_no_more_than_an_answer_may(system: LocalSystem) -> None:
    async def scenario() -> None:
        run_id = await sent(system)
        api = system.api()
        claimed = await api.call(ClaimRun(run_id=system.run(run_id).id, claim_id="c", executor="e"))
        assert isinstance(claimed, Claimed)
        assert claimed.inbox_seq == EVENTS
        answers = [claimed.messages]
        while answers[-1][-1].seq < EVENTS:
            answers.append((await api.call(GetInbox(run_id=claimed.run.id, after=answers[-1][-1].seq))).messages)
        assert len(answers) == 3
        assert all(sum(len(one.model_dump_json()) for one in part) <= MAX_LOG_ANSWER_BYTES for part in answers)
        assert [one.seq for part in answers for one in part] == list(range(1, EVENTS + 1))

    asyncio.run(scenario())


def test_a_run_reads_its_whole_inbox_however_many_answers_it_takes(system: LocalSystem) -> None:
    async def scenario() -> None:
        run_id = await sent(system)
        result = await system.executor(reader).execute(run_id, revision=None)
        assert result.outcome == "completed"

    asyncio.run(scenario())
