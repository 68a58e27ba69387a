"""Sleeping, and what a run can ask of time and chance: the same answers on every replay."""

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest

from aiki_push import Run, Slept, fixed, task, workflow
from aiki_push.domain.run import RunOptions
from aiki_push.domain.values import Inline, Json, RunId, StoredValue
from aiki_push.errors import IllegalTransition, SettingsError
from aiki_push.sdk.replay.memory import Memory
from aiki_push.sdk.replay.replayer import Replayer
from aiki_push.sdk.run import RunInfo
from aiki_push.testing import Harness
from tests.unit.sdk.bodies import output_of, refusal_of, version_of

HOUR = timedelta(hours=1)
BEGIN = datetime(2026, 1, 1, tzinfo=UTC)


@task("tick")
async def tick() -> None: ...


def test_a_sleep_is_over_when_its_time_has_passed() -> None:
    async def body(run: Run) -> Any:
        slept = await run.sleep("nap", HOUR)
        return [slept == Slept(woken_early=False), (run.now() - BEGIN) == HOUR]

    assert output_of(body) == [True, True]


def test_a_part_of_a_millisecond_is_slept_as_a_whole_one() -> None:
    async def body(run: Run) -> Any:
        await run.sleep("nap", timedelta(microseconds=1))
        return (run.now() - BEGIN) / timedelta(milliseconds=1)

    assert output_of(body) == 1


def test_each_sleep_of_a_name_is_another_one_and_one_wake_up_ends_one_of_them() -> None:
    async def body(run: Run) -> Any:
        return [(await run.sleep("nap", HOUR)).woken_early for _ in range(3)] + [str(run.now() - BEGIN)]

    async def scenario() -> Any:
        handle = await version.start(harness.client)
        await asyncio.sleep(5_400)
        await handle.wakeup("nap")
        return (await handle.wait()).value()

    version = version_of(body)
    with Harness(version) as harness:
        assert harness.run(scenario()) == [False, True, False, "2:30:00"]


def test_a_wake_up_of_another_name_is_refused_and_ends_nothing() -> None:
    async def body(run: Run) -> Any:
        return (await run.sleep("nap", HOUR)).woken_early

    async def scenario() -> Any:
        handle = await version.start(harness.client)
        await harness.settle()
        with pytest.raises(IllegalTransition):
            await handle.wakeup("lunch")
        return (await handle.wait()).value()

    version = version_of(body)
    with Harness(version) as harness:
        assert harness.run(scenario()) is False


def test_sleeps_side_by_side_take_as_long_as_the_longest() -> None:
    async def body(run: Run) -> Any:
        slept = await asyncio.gather(run.sleep("short", HOUR), run.sleep("long", 3 * HOUR), run.sleep("short", 2 * HOUR))
        return [[one.woken_early for one in slept], str(run.now() - BEGIN)]

    assert output_of(body) == [[False] * 3, "3:00:00"]


@pytest.mark.parametrize("name", ["", "a nap", "*", "nap\n", "a" * 129, 5, None])
def test_a_wrong_name_is_refused(name: Any) -> None:
    assert refusal_of(lambda run: run.sleep(name, HOUR)) == (
        "SettingsError",
        f"{name!r} cannot name a sleep: use 1 to 128 letters, digits, and . _ : -",
    )


@pytest.mark.parametrize(
    ("duration", "sentence"),
    [
        (60, "nap: duration must be a timedelta, not int"),
        (None, "nap: duration must be a timedelta, not NoneType"),
        (timedelta(0), "nap: duration must be longer than zero"),
        (timedelta(microseconds=-1), "nap: duration must be longer than zero"),
        (timedelta(days=3_651), "nap: duration must not be longer than ten years (3650 days)"),
    ],
)
def test_a_wrong_duration_is_refused_by_the_sleeps_name(duration: Any, sentence: str) -> None:
    assert refusal_of(lambda run: run.sleep("nap", duration)) == ("SettingsError", sentence)


@pytest.mark.parametrize("duration", [60, timedelta(0)])
def test_a_tasks_expected_duration_that_is_no_length_of_time_is_refused_where_it_is_defined(duration: Any) -> None:
    with pytest.raises(SettingsError, match=r"^charge: expected_duration must be "):
        task("charge", expected_duration=duration)


def facts_of(run: Run) -> tuple[str, str, float]:
    return run.now().isoformat(), str(run.uuid()), run.random()


def test_a_replay_has_the_same_times_and_the_same_chances() -> None:
    seen: list[list[Any]] = []

    async def body(run: Run) -> Any:
        facts: list[Any] = []
        seen.append(facts)
        for _ in range(3):
            facts.append(facts_of(run))
            await tick.start(run)
            facts.append(facts_of(run))
            await run.sleep("nap", HOUR)

    output_of(body)
    assert [len(facts) for facts in seen] == [2, 4, 6, 6]
    assert [seen[-1][: len(facts)] for facts in seen] == seen
    times, uuids, numbers = zip(*seen[-1], strict=True)
    assert list(times) == [(BEGIN + hours * HOUR).isoformat() for hours in (0, 0, 1, 1, 2, 2)]
    assert (len(set(uuids)), len(set(numbers))) == (6, 6)


def test_branches_runs_and_attempts_have_chances_of_their_own() -> None:
    drawn: list[str] = []

    async def draw(run: Run) -> None:
        await tick.start(run)
        drawn.append(str(run.uuid()))

    @workflow("drawing").v("1.0.0", retry=fixed(max_attempts=2, delay_ms=1))
    async def drawing(run: Run) -> None:
        await asyncio.gather(draw(run), draw(run))
        raise RuntimeError

    async def scenario() -> None:
        for _ in range(2):
            await (await drawing.start(harness.client)).wait()

    with Harness(drawing) as harness:
        harness.run(scenario())
    assert len(set(drawn)) == len(drawn) == 2 * 2 * 2


def test_a_uuid_is_one_of_version_four_and_a_number_is_below_one() -> None:
    async def body(run: Run) -> Any:
        return [[str(run.uuid()) for _ in range(100)], [run.random() for _ in range(100)]]

    uuids, numbers = output_of(body)
    assert {UUID(text).version for text in uuids} == {4}
    assert all(0 <= number < 1 for number in numbers)
    assert max(numbers) > 0.9


class Extreme(Replayer):
    """Calls whose chances all come out the same."""

    drawn = bytes(16)

    def draw(self) -> bytes:
        return self.drawn


@pytest.mark.parametrize(("byte", "number"), [(0x00, 0.0), (0xFF, 1 - 2.0**-53)])
def test_the_largest_number_is_still_below_one(byte: int, number: float) -> None:
    def value_of(stored: StoredValue) -> Json:
        assert isinstance(stored, Inline)
        return stored.value

    run_id = RunId("01M8MER5BZSFP81HXYFC8VWCSD")
    calls = Extreme(run_id, Memory(), value_of)
    calls.drawn = bytes([byte] * 16)
    info = RunInfo(id=run_id, workflow="tested", version="1.0.0", attempt=1, options=RunOptions())
    assert Run(info, calls).random() == number
