import asyncio
import math

import pytest

from aiki_push.domain.values import TimestampMs
from aiki_push.sdk.replay.loop import WorkflowLoop
from aiki_push.sdk.replay.timers import NEVER
from tests.unit.sdk.replay.begun_workflows import begun

T = TimestampMs(1_700_000_000_123)


def deadlines(loop: WorkflowLoop) -> list[tuple[str, int, int]]:
    return [(timer.branch, timer.ordinal, timer.deadline_at) for timer in loop.timers]


@pytest.mark.parametrize("at", [T, TimestampMs(1), TimestampMs(1_699_999_999_999), TimestampMs(4_102_444_800_001)])
@pytest.mark.parametrize(
    ("seconds", "delay_ms"),
    [
        (5, 5000),
        (0.001, 1),
        (0.0001, 1),
        (0.1, 100),
        (0.3, 300),
        (1.0015, 1002),
        (86_400 * 365.25, 31_557_600_000),
        (2.675, 2675),
    ],
)
def test_a_deadline_is_the_clock_and_the_delay_rounded_up_to_milliseconds(at: TimestampMs, seconds: float, delay_ms: int) -> None:
    async def sleep() -> None:
        await asyncio.sleep(seconds)

    async def timeout() -> None:
        async with asyncio.timeout(seconds):
            await asyncio.Event().wait()

    async def timeout_at() -> None:
        async with asyncio.timeout_at(asyncio.get_running_loop().time() + seconds):
            await asyncio.Event().wait()

    async def wait_for() -> None:
        await asyncio.wait_for(asyncio.Event().wait(), seconds)

    async def wait() -> None:
        await asyncio.wait([asyncio.get_running_loop().create_future()], timeout=seconds)

    for waiting in (sleep, timeout, timeout_at, wait_for, wait):
        loop, _ = begun(waiting(), at)
        assert deadlines(loop) == [("0", 1, at + delay_ms)], waiting
        loop.drop()


def test_every_millisecond_of_a_second_is_exact() -> None:
    async def timeout(ms: int) -> None:
        async with asyncio.timeout(ms / 1000):
            await asyncio.Event().wait()

    for ms in range(1, 1001):
        loop, _ = begun(timeout(ms), T + 7 * ms)
        assert deadlines(loop) == [("0", 1, T + 8 * ms)]
        loop.drop()


def test_timers_are_in_order_of_deadline_then_creation_and_numbered_by_branch() -> None:
    async def branch(*delays: float) -> None:
        await asyncio.gather(*(asyncio.sleep(delay) for delay in delays))

    async def sleep_twice() -> None:
        await asyncio.sleep(3)
        await asyncio.sleep(1)

    async def workflow() -> None:
        tasks = [asyncio.create_task(sleep_twice()), asyncio.create_task(sleep_twice())]
        async with asyncio.timeout(3), asyncio.timeout(2):
            await asyncio.wait(tasks)

    loop, _ = begun(workflow(), T)
    assert deadlines(loop) == [
        ("0", 2, T + 2000),
        ("0", 1, T + 3000),
        ("0.1", 1, T + 3000),
        ("0.2", 1, T + 3000),
    ]
    assert len({timer.number for timer in loop.timers}) == 4
    first = loop.timers[2]
    loop.set_time_ms(TimestampMs(T + 3500))
    first.fire()
    loop.run_until_idle()
    assert deadlines(loop)[2:] == [("0.2", 1, T + 3000), ("0.1", 2, T + 4500)]
    loop.drop()
    assert deadlines(loop) == []


def test_a_fired_timer_wakes_its_sleeper_once() -> None:
    woken = []

    async def workflow() -> None:
        woken.append(await asyncio.sleep(5, "woken"))
        woken.append(await asyncio.sleep(5, "again"))

    loop, _ = begun(workflow(), T)
    timer = loop.timers[0]
    timer.fire()
    timer.fire()
    assert deadlines(loop) == []
    loop.run_until_idle()
    timer.fire()
    loop.run_until_idle()
    assert woken == ["woken"]
    loop.drop()


def test_a_timeout_that_fires_raises_and_one_that_is_left_vanishes() -> None:
    async def workflow() -> str:
        async with asyncio.timeout(5):
            await asyncio.sleep(0)
        try:
            async with asyncio.timeout(10):
                await asyncio.sleep(20)
        except TimeoutError:
            return "timed out"
        return "slept"

    loop, task = begun(workflow(), T)
    assert deadlines(loop) == [("0", 2, T + 10_000), ("0", 3, T + 20_000)]
    loop.timers[0].fire()
    loop.run_until_idle()
    assert (task.result(), deadlines(loop)) == ("timed out", [])


def test_a_timer_cancelled_after_it_fired_does_nothing() -> None:
    async def workflow() -> str:
        async with asyncio.timeout(10):
            await future
        await asyncio.sleep(0)
        return "in time"

    loop = WorkflowLoop()
    future = loop.create_future()
    task = loop.start(workflow())
    loop.run_until_idle()
    future.set_result(None)
    loop.timers[0].fire()
    loop.run_until_idle()
    assert task.result() == "in time"


def test_no_delay_and_a_deadline_that_has_passed_are_no_timers() -> None:
    calls: list[str] = []

    async def workflow() -> None:
        loop = asyncio.get_running_loop()
        await asyncio.sleep(0)
        await asyncio.sleep(-1)
        loop.call_later(0, calls.append, "later")
        loop.call_at(loop.time() - 5, calls.append, "at")
        loop.call_later(0, calls.append, "cancelled").cancel()
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(asyncio.Event().wait(), 0)
        await asyncio.sleep(1)

    loop, _ = begun(workflow(), T)
    assert calls == ["later", "at"]
    assert deadlines(loop) == [("0", 1, T + 1000)]
    loop.drop()


@pytest.mark.parametrize("seconds", [math.inf, 1e300, (NEVER - T) / 1000])
def test_an_endless_delay_is_nothing_to_wait_for(seconds: float) -> None:
    loop, task = begun(asyncio.sleep(seconds), T)
    assert (deadlines(loop), task.done()) == ([], False)
    loop.drop()


def test_a_delay_that_is_no_number_is_refused() -> None:
    _, task = begun(asyncio.sleep(math.nan))
    with pytest.raises(ValueError, match="NaN"):
        task.result()


def test_the_clock_is_in_seconds_and_never_goes_back() -> None:
    loop = WorkflowLoop()
    assert (loop.time(), loop.now_at) == (0, 0)
    loop.set_time_ms(T)
    loop.set_time_ms(TimestampMs(T - 1))
    assert (loop.time(), loop.now_at) == (1_700_000_000.123, T)


def test_a_callback_of_a_timer_runs_in_the_context_of_its_call() -> None:
    import contextvars

    variable = contextvars.ContextVar("variable", default="outside")
    seen = []

    async def workflow() -> None:
        variable.set("at the call")
        asyncio.get_running_loop().call_later(1, lambda: seen.append(variable.get()))
        variable.set("later")

    loop, _ = begun(workflow(), T)
    loop.timers[0].fire()
    loop.run_until_idle()
    assert seen == ["at the call"]
