"""Checkpoints of many and of large records: split by the executor, limited by the server, whole in the end."""

import asyncio

import pytest

from aiki_push import Run, task
from aiki_push.domain.errors import PayloadTooLarge
from aiki_push.domain.log_records import TaskFailed
from aiki_push.ports.api.checkpoints import MAX_CHECKPOINT_BYTES, AppendCheckpoint
from tests.integration.executions import COMPLETED, FAILED, execute, output_of, version_of
from tests.integration.owners import Owner, claim, completed, start
from tests.local_system import NAMESPACE, LocalSystem

LETTERS = "abcdefghij"


@task("enlarge")
async def enlarge(letter: str) -> str:
    return letter * 100_000


@task("measure")
async def measure(text: str) -> int:
    return len(text)


async def test_outputs_that_do_not_fit_into_one_checkpoint_go_into_several_and_come_back_on_replay() -> None:
    async def body(run: Run) -> list[int]:
        texts = await asyncio.gather(*(enlarge.start(run, letter) for letter in LETTERS))
        return list(await asyncio.gather(*(measure.start(run, text) for text in texts)))

    system = LocalSystem()
    version = version_of(body)
    run_id = (await version.start(system.client())).id
    api = system.faulty_api()
    assert await system.executor(version, api=api).execute(run_id, revision=0) == COMPLETED
    sizes = [
        sum(len(record.model_dump_json()) for record in call.records) for call in api.called if isinstance(call, AppendCheckpoint)
    ]
    assert max(sizes) <= MAX_CHECKPOINT_BYTES
    assert await output_of(system, run_id) == [100_000] * len(LETTERS)


async def test_a_value_above_the_limit_fails_its_task_once_by_name_and_the_run_is_not_delivered_again() -> None:
    ran: list[str] = []

    @task("too-large")
    async def too_large() -> str:
        ran.append("once")
        return "x" * 450_000

    system = LocalSystem()
    result, run_id = await execute(system, lambda run: too_large.start(run))
    failed = next(record for record in system.records(run_id) if isinstance(record, TaskFailed))
    assert (result, ran, failed.error.name) == (FAILED, ["once"], "PayloadTooLarge")
    assert "too-large: output" in failed.error.message


def test_a_checkpoint_above_the_limit_is_refused_and_writes_nothing() -> None:
    system = LocalSystem()
    owner = Owner(system, claim(system, start(system)))
    before = system.records(owner.claimed.run.id)
    many = [completed(f"task-{number}-{'x' * 1_000}") for number in range(200)]
    with pytest.raises(PayloadTooLarge, match="Send them in parts"):
        system.server.call(NAMESPACE, owner.checkpoint(*many))
    assert system.records(owner.claimed.run.id) == before
