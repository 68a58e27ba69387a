"""Named sleeps: they take their time and no process, and can be ended early."""

import asyncio
from datetime import timedelta

import pytest

from aiki_push import Run, WorkflowVersion, workflow
from aiki_push.testing import Harness
from tests.integration.hours import HOUR_MS, hours_of


def test_a_sleep_takes_its_time_and_no_process() -> None:
    @workflow("sleeper").v("1")
    async def sleeper(run: Run) -> bool:
        slept = await run.sleep("long", timedelta(days=30))
        return slept.woken_early

    with Harness(sleeper) as harness:

        async def scenario() -> None:
            handle = await sleeper.start(harness.client)
            await harness.settle()
            assert harness.header(handle.id).state.status == "sleeping"
            assert (await handle.wait()).value() is False
            assert harness.segments(handle.id) == 2

        harness.run(scenario())


def test_two_sleeps_at_once_take_as_long_as_the_longer_one() -> None:
    @workflow("sleeper").v("1")
    async def sleeper(run: Run) -> list[bool]:
        both = await asyncio.gather(run.sleep("one", timedelta(hours=1)), run.sleep("two", timedelta(hours=2)))
        return [slept.woken_early for slept in both]

    with Harness(sleeper) as harness:
        output, hours = harness.run(hours_of(harness, sleeper))
    assert output == [False, False]
    assert hours == pytest.approx(2, abs=0.001)


def test_a_sleep_is_woken_early_by_name_and_others_sleep_on() -> None:
    @workflow("sleeper").v("1")
    async def sleeper(run: Run) -> list[bool]:
        both = await asyncio.gather(run.sleep("a", timedelta(hours=5)), run.sleep("b", timedelta(hours=1)))
        third = await run.sleep("a", timedelta(hours=1))
        return [slept.woken_early for slept in (*both, third)]

    with Harness(sleeper) as harness:

        async def scenario() -> None:
            handle = await sleeper.start(harness.client)
            await harness.settle()
            await handle.wakeup("a")
            began_at = harness.now
            # The later sleep of the same name began after the wake-up, which it does not take.
            assert (await handle.wait()).value() == [True, False, False]
            assert (harness.now - began_at) / HOUR_MS == pytest.approx(2, abs=0.001)

        harness.run(scenario())


@pytest.mark.parametrize(
    ("changed_hours", "total_hours"),
    [
        pytest.param(5, 5, id="lengthened: it sleeps on, and not once more from the beginning"),
        pytest.param(1, 3, id="shortened: it is over when the run is next looked at"),
    ],
)
def test_a_sleep_whose_length_the_code_changed_counts_from_its_start(changed_hours: int, total_hours: int) -> None:
    def lasting(hours: int) -> WorkflowVersion[[], int]:
        @workflow("changing").v("1")
        async def changing(run: Run) -> int:
            await run.sleep("nap", timedelta(hours=hours))
            return hours

        return changing

    before = lasting(3)
    with Harness(before) as harness:

        async def scenario() -> float:
            began_at = harness.now
            handle = await before.start(harness.client)
            await asyncio.sleep(2 * 3_600)
            harness.add(lasting(changed_hours))
            assert (await handle.wait()).value() == changed_hours
            return (harness.now - began_at) / HOUR_MS

        assert harness.run(scenario()) == pytest.approx(total_hours, abs=0.001)
