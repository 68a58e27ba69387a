"""The workflows of the documentation do what the text around them says, on a server in this process."""

import asyncio
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

import pytest

from aiki_push import AnyWorkflowVersion, Completed, Failed, Finished, Handle, Run, workflow
from aiki_push.domain.log_records import TaskStarted
from aiki_push.sdk.executor import SegmentResult
from aiki_push.testing import FakeClock
from tests.architecture.source_files import ROOT
from tests.docs.test_docs_run import programs_of
from tests.integration.crashes import execute_until_power_cut, recover
from tests.local_system import NAMESPACE, LocalSystem

GUIDE = "docs/writing-workflows.md"


@contextmanager
def program(page: str, file: str, folder: Path) -> Iterator[ModuleType]:
    """A program of a page, as a module."""
    path = folder / file
    path.write_text(programs_of((ROOT / page).read_text("utf-8"))[file], "utf-8")
    spec = spec_from_file_location(f"documented_{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    sys.modules[module.__name__] = module
    try:
        spec.loader.exec_module(module)
        yield module
    finally:
        del sys.modules[module.__name__]


@pytest.fixture
def guide(tmp_path: Path) -> Iterator[ModuleType]:
    with program(GUIDE, "page.py", tmp_path) as module:
        yield module


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def system(clock: FakeClock) -> LocalSystem:
    return LocalSystem(clock=clock)


async def finish(
    system: LocalSystem, clock: FakeClock, version: AnyWorkflowVersion, handle: Handle[object]
) -> tuple[Finished[object], int]:
    """Execute the run to its end, each time it is due; how it ended, and how often it was parked."""
    parks = 0
    while (result := await system.executor(version).execute(handle.id, revision=None)) == SegmentResult("parked"):
        parks += 1
        clock.advance((system.run(handle.id).due_at or 0) - clock.now())
        system.attention.advance(NAMESPACE, handle.id)
    assert result.outcome in ("completed", "failed")
    return await handle.wait(), parks


async def test_the_readmes_workflow_sleeps_once_and_returns_the_account(
    system: LocalSystem, clock: FakeClock, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with program("README.md", "welcome.py", tmp_path) as readme:
        handle = await readme.welcome.start(system.client(), readme.SignUp(email="ada@example.com"))
        finished, parks = await finish(system, clock, readme.welcome, handle)
    assert (finished.state, parks) == (Completed("account-of-ada@example.com"), 1)
    assert capsys.readouterr().out == "Welcome, ada@example.com!\nHow do you like it, ada@example.com?\n"


@pytest.mark.parametrize(
    ("name", "given", "output", "parks"),
    [
        ("sale_v1", {"article": "mug", "amount": 2}, "charged 500", 0),
        ("reservation", {"article": "mug", "amount": 2}, "no mug left", 0),
        ("payout", 5, "sent 5", 0),
        ("basket", [{"article": "mug", "amount": 1}, {"article": "cup", "amount": 3}], 1_000, 0),
        ("impatient_sale", {"article": "mug", "amount": 1}, "charged 250", 0),
        ("reminder", {"article": "mug", "amount": 1}, "given up", 3),
        ("patient", 5, "charged 5", 1),
    ],
)
async def test_a_workflow_of_the_guide_returns_what_its_code_says(
    system: LocalSystem, clock: FakeClock, guide: ModuleType, name: str, given: object, output: object, parks: int
) -> None:
    version = getattr(guide, name)
    decoded = version.input_type.decode(given, at="input")
    handle = await version.start(system.client(), decoded)
    finished, parked = await finish(system, clock, version, handle)
    assert (finished.state, parked) == (Completed(output), parks)


async def test_what_asks_whether_the_run_is_suspending_and_what_is_a_task_happen_at_the_end_only(
    system: LocalSystem, clock: FakeClock, guide: ModuleType, capsys: pytest.CaptureFixture[str]
) -> None:
    handle = await guide.patient.start(system.client(), 5)
    _, parks = await finish(system, clock, guide.patient, handle)
    started = [record for record in system.records(handle.id) if isinstance(record, TaskStarted)]
    assert (parks, capsys.readouterr().out, len(started)) == (1, "the end\n", 1)


@pytest.mark.parametrize(
    ("name", "given", "error", "message"),
    [
        ("not_durable", (), "NotDurable", "asyncio.to_thread() was used in a workflow"),
        ("sale_v2", ({"article": "mug", "amount": 2},), "TaskFailed", "OutOfStock: mug"),
    ],
)
async def test_a_workflow_of_the_guide_that_must_fail_does(
    system: LocalSystem, clock: FakeClock, guide: ModuleType, name: str, given: tuple[object, ...], error: str, message: str
) -> None:
    version = getattr(guide, name)
    handle = await version.start(system.client(), *(version.input_type.decode(value, at="input") for value in given))
    finished, _ = await finish(system, clock, version, handle)
    assert isinstance(finished.state, Failed)
    assert finished.state.error.name == error
    assert message in finished.state.error.message


async def test_a_transfer_that_was_cut_off_is_not_repeated_but_opens_a_case(
    system: LocalSystem, clock: FakeClock, guide: ModuleType
) -> None:
    handle = await guide.payout.start(system.client(), 5)
    assert await execute_until_power_cut(system, guide.payout, handle.id, after=1)
    recover(system, clock, handle.id)
    finished, _ = await finish(system, clock, guide.payout, handle)
    assert finished.state == Completed("case: was the transfer made?")


@pytest.mark.parametrize("amount", ["?", "seven"])
async def test_what_is_not_worth_another_attempt_ends_a_task_at_once(
    system: LocalSystem, clock: FakeClock, guide: ModuleType, amount: str
) -> None:
    @workflow("conversion").v("1.0.0")
    async def conversion(run: Run, given: str) -> int:
        converted: int = await guide.convert.start(run, given)
        return converted

    handle = await conversion.start(system.client(), amount)
    finished, _ = await finish(system, clock, conversion, handle)
    assert isinstance(finished.state, Failed)
    assert "failed in attempt 1" in finished.state.error.message


async def test_whoever_sells_hears_of_the_end(guide: ModuleType) -> None:
    system = LocalSystem()
    selling = asyncio.create_task(guide.sell(system.client()))
    while not system.wakeups.hints:
        await asyncio.sleep(0)
    await system.executor(guide.sale_v1).execute(system.wakeups.hints[0].run_id, revision=None)
    assert await selling == "charged 500"
