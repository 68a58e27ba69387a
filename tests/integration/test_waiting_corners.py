"""Waits that are cancelled, shielded, timed out or given up at awkward moments: no event is lost, and none is taken twice."""

import asyncio
from collections.abc import Awaitable
from datetime import timedelta
from typing import Any

import pytest

from aiki_push import Received, Run, TimedOut, task
from aiki_push.testing import Harness
from tests.integration.cornered import HOUR, go, outcome_of, stop, version_of


async def value(waiting: Awaitable[Received[int]]) -> int:
    return (await waiting).data


@pytest.mark.parametrize(("sent", "first"), [([(0, None), (0, 7)], "cancelled"), ([(0, 7), (0, None)], "got 7")])
def test_of_a_message_and_the_end_of_the_wait_for_it_the_earlier_one_counts(sent: list[Any], first: str) -> None:
    async def body(run: Run) -> list[object]:
        await run.sleep("until-both-are-there", HOUR)
        waiting = asyncio.create_task(value(go.wait(run)))
        await stop.wait(run)
        waiting.cancel()
        await asyncio.wait([waiting])
        again = await go.wait(run, timeout=HOUR)
        return ["cancelled" if waiting.cancelled() else f"got {waiting.result()}", isinstance(again, Received)]

    assert outcome_of(body, *sent) == [first, first == "cancelled"]


@pytest.mark.parametrize(("sent_at", "expected"), [(3_600.0, [7, "late"]), (3_600.001, ["late", 7])])
def test_of_two_waits_for_one_event_the_one_whose_time_is_up_leaves_it_to_the_other(
    sent_at: float, expected: list[object]
) -> None:
    async def body(run: Run) -> list[object]:
        both = await asyncio.gather(go.wait(run, timeout=HOUR), go.wait(run, timeout=2 * HOUR))
        return [got.data if isinstance(got, Received) else "late" for got in both]

    assert outcome_of(body, (sent_at, 7)) == expected


@pytest.mark.parametrize(("sent_at", "expected"), [(3_600.0, "got 7"), (3_600.001, "too late")])
def test_an_event_at_the_instant_of_a_timer_around_its_wait_is_not_too_late(sent_at: float, expected: str) -> None:
    async def body(run: Run) -> str:
        try:
            async with asyncio.timeout(3_600):
                return f"got {await value(go.wait(run))}"
        except TimeoutError:
            return "too late"

    assert outcome_of(body, (sent_at, 7)) == expected


def test_waits_are_seen_in_the_order_in_which_they_end() -> None:
    async def body(run: Run) -> list[object]:
        tasks = [
            asyncio.create_task(value(go.wait(run))),
            asyncio.create_task(run.sleep("nap", HOUR)),
            asyncio.create_task(value(go.wait(run))),
            asyncio.create_task(asyncio.sleep(2 * 3_600, "timer")),
        ]
        return [str(await ended) for ended in asyncio.as_completed(tasks)]

    slept = "Slept(woken_early=False)"
    assert outcome_of(body, (1_800, 1), (3 * 3_600, 2)) == ["1", slept, "timer", "2"]


@pytest.mark.parametrize(
    ("is_timer", "expected"), [pytest.param(True, ["nothing", 7], id="asyncio"), pytest.param(False, [7, "nothing"], id="own")]
)
def test_a_wait_sees_what_is_there_within_any_time_but_not_within_none(is_timer: bool, expected: list[object]) -> None:
    async def look(run: Run) -> object:
        if not is_timer:
            got = await go.wait(run, timeout=timedelta(milliseconds=1))
            return got.data if isinstance(got, Received) else "nothing"
        try:
            async with asyncio.timeout(0):
                return await value(go.wait(run))
        except TimeoutError:
            return "nothing"

    async def body(run: Run) -> list[object]:
        await run.sleep("until-it-is-there", HOUR)
        first = await look(run)
        rest = await go.wait(run, timeout=HOUR)
        return [first, rest.data if isinstance(rest, Received) else "nothing"]

    assert outcome_of(body, (0, 7)) == expected


def test_a_wait_in_a_finally_block_is_a_wait_only_when_the_block_is_really_left() -> None:
    entered: list[bool] = []

    async def body(run: Run) -> list[object]:
        got: list[object] = []
        try:
            await run.sleep("first", HOUR)
        finally:
            entered.append(run.suspending)
            got.append(await value(go.wait(run)))
        return got

    assert outcome_of(body, (60, 1), (120, 2)) == [1]
    assert entered == [True, False, False]


def test_a_wait_in_a_group_whose_sibling_fails_leaves_its_event_to_the_next() -> None:
    async def failing(run: Run) -> None:
        await stop.wait(run)
        raise ValueError("stopped")

    async def body(run: Run) -> list[object]:
        caught: list[object] = []
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(go.wait(run))
                group.create_task(failing(run))
        except* ValueError as errors:
            caught += [str(error) for error in errors.exceptions]
        return [*caught, await value(go.wait(run))]

    assert outcome_of(body, (60, None), (60, 7)) == ["stopped", 7]


def test_a_shielded_wait_goes_on_when_whoever_waited_for_it_gave_up() -> None:
    async def body(run: Run) -> list[object]:
        inner = asyncio.create_task(value(go.wait(run)))
        try:
            await asyncio.wait_for(asyncio.shield(inner), 60)
        except TimeoutError:
            later = asyncio.create_task(value(go.wait(run)))
        return [await inner, await later]

    assert outcome_of(body, (120, 1), (180, 2)) == [1, 2]


def test_a_wait_after_an_early_wake_is_not_ended_by_the_same_wake() -> None:
    async def body(run: Run) -> list[bool]:
        return [(await run.sleep("poll", HOUR)).woken_early for _ in range(3)]

    version = version_of(body)
    with Harness(version) as harness:

        async def scenario() -> None:
            handle = await version.start(harness.client)
            await harness.settle()
            await handle.wakeup("poll")  # at once, so that everything is at one instant
            assert (await handle.wait()).value() == [True, False, False]

        harness.run(scenario())


def test_a_wait_that_nobody_awaits_takes_nothing() -> None:
    async def body(run: Run) -> list[object]:
        abandoned = go.wait(run, timeout=2 * HOUR)
        abandoned.close()
        got = await go.wait(run, timeout=HOUR)
        late = await go.wait(run, timeout=HOUR)
        return [got.data if isinstance(got, Received) else "late", isinstance(late, TimedOut)]

    assert outcome_of(body, (60, 7)) == [7, True]


def test_a_message_of_a_cancelled_handlers_time_is_not_lost() -> None:
    """A handler runs, its task is cancelled by the timeout around both, and the event arrived meanwhile."""

    @task("long")
    async def long() -> None:
        await asyncio.sleep(7_200)

    async def body(run: Run) -> list[object]:
        try:
            async with asyncio.timeout(3_600):
                await asyncio.gather(long.start(run), stop.wait(run))
        except TimeoutError:
            pass
        return [await value(go.wait(run))]

    assert outcome_of(body, (1_800, 7)) == [7]
