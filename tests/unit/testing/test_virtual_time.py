"""The event loop in virtual time."""

import asyncio
import math
import threading
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from typing import Any, TypeVar

import pytest

from aiki_push.sdk.replay.handlers import in_thread
from aiki_push.testing import FAKE_NOW, FakeClock, NothingHappens, VirtualLoop
from aiki_push.testing.virtual_time import background

T = TypeVar("T")

DAY_MS = 86_400_000


class Running:
    """A virtual loop, and how far the time jumped whenever nothing was ready."""

    def __init__(self) -> None:
        self.clock = FakeClock()
        self.jumps: list[int | None] = []
        self.foreground: list[int | None] = []
        self.when_idle: Callable[[], None] = lambda: None
        self.loop = VirtualLoop(self.clock, self._jump)

    def _jump(self, left_ms: int | None) -> None:
        self.jumps.append(left_ms)
        self.foreground.append(self.loop.foreground_ms)
        self.when_idle()
        if left_ms is None:
            raise NothingHappens("nothing is scheduled")
        self.clock.advance(left_ms)

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        return self.loop.run_until_complete(coroutine)

    def close(self) -> None:
        close(self.loop)


def close(loop: asyncio.AbstractEventLoop) -> None:
    """Cancel what waits, and close the loop."""
    tasks = asyncio.all_tasks(loop)
    for task in tasks:
        task.cancel()
    if tasks:
        loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))
    loop.close()


@pytest.fixture
def running() -> Iterator[Running]:
    running = Running()
    yield running
    running.close()


def test_a_sleep_takes_its_time_by_both_clocks(running: Running) -> None:
    async def sleep() -> tuple[float, float]:
        began = asyncio.get_running_loop().time()
        await asyncio.sleep(600)
        return began, asyncio.get_running_loop().time()

    assert running.run(sleep()) == (0.0, 600.0)
    assert (running.clock.now() - FAKE_NOW, running.clock.monotonic_ms(), running.jumps) == (600_000, 600_000, [600_000])


def test_a_year_takes_a_jump_for_each_day(running: Running) -> None:
    running.run(asyncio.sleep(365 * 86_400))
    assert running.jumps == [DAY_MS] * 365


def test_timers_fire_in_the_order_of_their_times(running: Running) -> None:
    seen: list[tuple[str, int]] = []

    async def sleep(name: str, seconds: float) -> None:
        await asyncio.sleep(seconds)
        seen.append((name, int(running.clock.monotonic_ms())))

    async def both() -> None:
        await asyncio.gather(sleep("late", 0.3), sleep("early", 0.1), sleep("middle", 0.2))

    running.run(both())
    assert seen == [("early", 100), ("middle", 200), ("late", 300)]


@pytest.mark.parametrize(
    ("seconds", "jumps"), [(0.0003, [1]), (0.001, [1]), (0.0011, [2]), (1e-12, []), (0.1 + 0.2, [300]), (0.3, [300])]
)
def test_a_timer_is_due_at_the_next_whole_millisecond(running: Running, seconds: float, jumps: list[int]) -> None:
    running.run(asyncio.sleep(seconds))
    assert running.jumps == jumps


@pytest.mark.parametrize("years", [0, 1, 100, 300])
def test_a_millisecond_is_a_millisecond_however_late_it_is(running: Running, years: int) -> None:
    running.clock.advance(years * 365 * DAY_MS)
    for _ in range(20):
        running.run(asyncio.sleep(0.001))
    assert running.jumps == [1] * 20


def test_a_timeout_cuts_off_what_sleeps_longer(running: Running) -> None:
    async def cut_off() -> float:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(5):
                await asyncio.sleep(600)
        return asyncio.get_running_loop().time()

    assert running.run(cut_off()) == 5.0


def test_a_cancelled_timer_makes_no_time_pass(running: Running) -> None:
    async def cancel() -> None:
        asyncio.get_running_loop().call_later(600, lambda: None).cancel()
        await asyncio.sleep(1)

    running.run(cancel())
    assert running.jumps == [1_000]


@pytest.mark.parametrize("wait", [lambda: asyncio.Event().wait(), lambda: asyncio.sleep(math.inf)])
def test_where_nothing_can_happen_whoever_waits_is_told(running: Running, wait: Any) -> None:
    with pytest.raises(NothingHappens, match="nothing is scheduled"):
        running.run(wait())


def test_without_a_callback_the_loop_jumps_and_says_when_nothing_can_happen() -> None:
    clock = FakeClock()
    loop = VirtualLoop(clock)
    loop.run_until_complete(asyncio.sleep(600))
    assert clock.monotonic_ms() == 600_000
    with pytest.raises(NothingHappens, match="waits, and for nothing"):
        loop.run_until_complete(asyncio.Event().wait())
    close(loop)


@pytest.mark.parametrize("start", [in_thread, asyncio.to_thread], ids=["a task of aiki_push", "asyncio.to_thread"])
def test_no_time_passes_while_a_thread_works(running: Running, start: Callable[..., Awaitable[object]]) -> None:
    may_end = threading.Event()
    running.when_idle = may_end.set

    async def work() -> bool:
        asyncio.get_running_loop().call_later(600, lambda: None)
        return bool(await start(lambda: may_end.wait(timeout=20)))

    assert running.run(work())
    assert (set(running.jumps), running.clock.monotonic_ms()) == ({0}, 0)


def test_a_thread_left_over_from_before_holds_nothing_up() -> None:
    may_end = threading.Event()
    threading.Thread(target=may_end.wait, name="aiki-push task", daemon=True).start()
    running = Running()
    running.run(asyncio.sleep(600))
    assert running.jumps == [600_000]
    may_end.set()
    running.close()


def test_a_timer_counts_as_foreground_unless_its_task_is_in_the_background(running: Running) -> None:
    async def tick() -> None:
        while True:
            await asyncio.sleep(1)

    async def beside() -> None:
        ticking = asyncio.get_running_loop().create_task(tick(), context=background())
        await asyncio.sleep(1.5)
        waiting: asyncio.Future[None] = running.loop.create_future()
        asyncio.get_running_loop().create_task(wake(waiting), context=background())
        await waiting
        ticking.cancel()

    async def wake(waiting: asyncio.Future[None]) -> None:
        await asyncio.sleep(2)
        waiting.set_result(None)

    running.run(beside())
    assert (running.jumps, running.foreground) == ([1_000, 500, 500, 1_000, 500], [1_500, 500, None, None, None])


def test_a_cancelled_timer_is_not_in_the_foreground(running: Running) -> None:
    async def look() -> tuple[int | None, int | None]:
        first = running.loop.call_later(1, lambda: None)
        running.loop.call_later(2, lambda: None)
        before = running.loop.foreground_ms
        first.cancel()
        return before, running.loop.foreground_ms

    assert running.run(look()) == (1_000, 2_000)
