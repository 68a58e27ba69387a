"""How scenarios end: by what they return or raise, by errors that nobody else would hear of, and where nothing can happen."""

import asyncio
from collections.abc import Iterator

import pytest

from aiki_push import Run, task
from aiki_push.domain.errors import SettingsError
from aiki_push.sdk.executor import ExecutorConfig
from aiki_push.sdk.run import RunInfo
from aiki_push.testing import FAKE_NOW, Harness, NotExecuting, NothingHappens
from tests.integration.sleepers import dozing, hanging, listening, month, sleepers


@pytest.fixture(name="harness")
def harness_of_sleepers() -> Iterator[Harness]:
    with Harness(month, dozing, hanging, listening) as harness:
        yield harness


def test_what_nobody_executes_cannot_crash(harness: Harness) -> None:
    async def scenario() -> None:
        handle = await month.start(harness.client, "you")
        await harness.settle()
        harness.crash(handle.id)

    with pytest.raises(NotExecuting, match="is sleeping, and no executor has it"):
        harness.run(scenario())


def test_a_handler_that_never_ends_is_named(harness: Harness) -> None:
    async def scenario() -> None:
        handle = await hanging.start(harness.client)
        await handle.wait()

    with pytest.raises(NothingHappens) as raised:
        harness.run(scenario())
    first, second = str(raised.value).splitlines()
    assert first.startswith("nothing more can happen, and the scenario waits (test_harness_endings.py:")
    assert second.endswith("(sleeper hanging) is being executed, and the handler of hang does not end")
    assert harness.now <= FAKE_NOW + 181_000


def test_a_handler_that_never_ends_does_not_hide_what_is_to_come(harness: Harness) -> None:
    async def scenario() -> str:
        await hanging.start(harness.client)
        handle = await month.start(harness.client, "you")
        return (await handle.wait()).value()

    assert harness.run(scenario()) == "hello you"


def test_a_run_that_waits_for_an_event_is_named_with_it(harness: Harness) -> None:
    async def scenario() -> None:
        handle = await listening.start(harness.client)
        await handle.wait()

    with pytest.raises(NothingHappens, match=r"\(sleeper listening\) waits for event bell, and nothing in the test brings it$"):
        harness.run(scenario())


def test_a_scenario_that_waits_without_a_run_is_told_so(harness: Harness) -> None:
    with pytest.raises(NothingHappens, match="no run was started"):
        harness.run(asyncio.Event().wait())


def test_a_run_of_a_version_that_the_harness_lacks_stalls_and_says_why(harness: Harness) -> None:
    @sleepers.v("missing")
    async def missing(run: Run) -> None: ...

    async def scenario() -> None:
        handle = await missing.start(harness.client)
        await handle.wait()

    with pytest.raises(NothingHappens, match="the harness was not given sleeper missing"):
        harness.run(scenario())


def test_after_a_scenario_nothing_runs_and_the_next_one_goes_on_with_its_runs(harness: Harness) -> None:
    stopped: list[str] = []

    @task("long")
    async def long() -> str:
        try:
            await asyncio.sleep(3_600)
        finally:
            stopped.append("stopped")
        return "done"

    @sleepers.v("long-going")
    async def going(run: Run) -> str:
        return await long.start(run)

    async def first() -> str:
        handle = await going.start(harness.client)
        await asyncio.sleep(1)
        return handle.id

    async def second(run_id: str) -> str:
        return (await (await going.get(harness.client, run_id)).wait()).value()

    harness.add(going)
    run_id = harness.run(first())
    assert (stopped, harness.header(run_id).state.status, harness.now) == (["stopped"], "running", FAKE_NOW + 1_000)
    assert harness.run(second(run_id)) == "done"
    assert (stopped, harness.segments(run_id)) == (["stopped"] * 2, 2)


def test_what_the_scenario_raises_comes_out(harness: Harness) -> None:
    async def scenario() -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        harness.run(scenario())


def test_an_error_of_the_context_factory_ends_the_scenario() -> None:
    def broken(_: RunInfo) -> object:
        raise ZeroDivisionError("no context")

    async def scenario() -> None:
        handle = await month.start(harness.client, "you")
        await handle.wait()

    with Harness(month, context=broken) as harness, pytest.raises(ZeroDivisionError, match="no context"):
        harness.run(scenario())


def test_settings_that_do_not_fit_end_the_scenario() -> None:
    async def scenario() -> None:
        handle = await month.start(harness.client, "you")
        await handle.wait()

    config = ExecutorConfig(claim_refresh_interval_ms=60_000)
    with Harness(month, config=config) as harness, pytest.raises(SettingsError, match="claim_refresh_interval_ms is 60000"):
        harness.run(scenario())


def test_a_scenario_that_does_not_end_when_it_is_cancelled_is_reported(harness: Harness) -> None:
    async def stubborn() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.Event().wait()

    with pytest.raises(NothingHappens, match="scenario does not end, although it was cancelled"):
        harness.run(stubborn())
