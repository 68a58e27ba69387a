"""Who goes first: by the time of being due, then by priority, then by id; pulled or pushed, whatever happened before.

The model is a list that is sorted.
"""

import random
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from aiki_push.adapters.storage import keys
from aiki_push.adapters.storage.indexes import MAX_QUEUE_LOOKED_AT
from aiki_push.adapters.storage.memory.table import MemoryTable
from aiki_push.adapters.storage.table import Always, Put, Table
from aiki_push.domain.changes import SaveRun
from aiki_push.domain.run_states import Queued
from aiki_push.domain.values import RunId, TimestampMs
from aiki_push.ports.api.claims import ClaimRuns
from aiki_push.ports.api.runs import StartRun
from aiki_push.ports.publisher import Declined, Deferred, Failed, Outcome, Published, ReadyRun
from aiki_push.testing import FAKE_NOW, FakeClock
from tests.local_system import NAMESPACE, LocalSystem


@dataclass(frozen=True, order=True)
class Expected:
    """A run of the model: its fields in the order in which they count."""

    due_at: int
    priority: int
    run_id: RunId
    queue: tuple[str, str | None]


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def system(table: Table, clock: FakeClock) -> LocalSystem:
    return LocalSystem(table, clock=clock)


@pytest.fixture
def size(table: Table) -> int:
    """How many runs: simulated tables are slow."""
    return 1_000 if isinstance(table, MemoryTable) else 60


def started(
    system: LocalSystem, clock: FakeClock, chance: random.Random, size: int, queues: list[tuple[str, str | None]]
) -> Iterator[Expected]:
    """Runs of all kinds: five a millisecond, some delayed, of every priority, in several queues."""
    for number in range(size):
        clock.set(TimestampMs(FAKE_NOW + number // 5))
        version, pool = queue = chance.choice(queues)
        delay_ms = chance.choice([None, None, None, 1, 2, 50, 100])
        priority = chance.randrange(10)
        options = {"pool": pool, "priority": priority, "delay_ms": delay_ms}
        asked = StartRun.model_validate({"workflow": "w", "version": version, "options": options})
        run = system.server.call(NAMESPACE, asked)
        yield Expected(clock.now() + (delay_ms or 0), priority, run.id, queue)


def advance_all(system: LocalSystem, runs: list[Expected], chance: random.Random) -> None:
    """As hints do that come in any order."""
    for run in chance.sample(runs, len(runs)):
        system.attention.advance(NAMESPACE, run.run_id)


def make_ready(system: LocalSystem, clock: FakeClock, runs: list[Expected], chance: random.Random) -> None:
    """Have every delayed run become ready, each at a moment of its own."""
    for run in chance.sample(runs, len(runs)):
        if system.run(run.run_id).state.status == "scheduled":
            clock.set(TimestampMs(max(clock.now() + 1, run.due_at + chance.randrange(3_000))))
            system.attention.advance(NAMESPACE, run.run_id)


QUEUES: list[tuple[str, str | None]] = [("1", "eu"), ("1", "us"), ("2", "eu"), ("2", "us")]


@pytest.mark.parametrize("seed", range(3))
def test_pulled_runs_come_in_the_order_of_the_model(system: LocalSystem, clock: FakeClock, size: int, seed: int) -> None:
    chance = random.Random(seed)
    runs = list(started(system, clock, chance, size, QUEUES))
    make_ready(system, clock, runs, chance)
    got: list[RunId] = []
    while len(got) < size:
        asked = {
            "request_id": f"r{len(got)}",
            "executor": "e",
            "workflows": [{"name": "w", "version": version} for version in ("2", "1")],
            "pools": ["us", "eu"],
            "limit": chance.randrange(1, 40),
        }
        claims = system.server.call(NAMESPACE, ClaimRuns.model_validate(asked)).claims
        assert claims
        got += [one.run.id for one in claims]
    assert got == [run.run_id for run in sorted(runs)]


def test_runs_become_ready_and_are_pulled_in_turns_as_in_the_model(system: LocalSystem, clock: FakeClock, size: int) -> None:
    chance = random.Random(7)
    left = list(started(system, clock, chance, size, [("1", None)]))
    clock.set(TimestampMs(FAKE_NOW - 1))
    while left:
        clock.advance(chance.randrange(1, 20))
        due = sorted(run for run in left if run.due_at <= clock.now())
        for run in chance.sample(due, len(due)):
            if system.run(run.run_id).state.status == "scheduled":
                system.attention.advance(NAMESPACE, run.run_id)
        asked = {
            "request_id": f"r{clock.now()}",
            "executor": "e",
            "workflows": [{"name": "w", "version": "1"}],
            "limit": chance.randrange(1, 40),
        }
        request = ClaimRuns.model_validate(asked)
        claims = system.server.call(NAMESPACE, request).claims
        ready = sorted(run for run in left if system.store.load(NAMESPACE, run.run_id).ready_at is not None)
        assert [one.run.id for one in claims] == [run.run_id for run in ready[: request.limit]]
        left = [run for run in left if run not in ready[: request.limit]]


OUTCOMES: dict[str, list[Outcome]] = {
    "failed": [Failed("refused")],
    "every outcome": [Failed("refused"), Declined(), Published()],
}


@pytest.mark.parametrize("outcomes", OUTCOMES.values(), ids=OUTCOMES)
def test_offers_come_in_the_order_of_the_model_however_often_they_were_made_in_vain(
    system: LocalSystem, clock: FakeClock, size: int, outcomes: list[Outcome]
) -> None:
    chance = random.Random(3)
    runs = list(started(system, clock, chance, size, [("1", None)]))
    system.publisher.answer = lambda _: chance.choice(outcomes)
    make_ready(system, clock, runs, chance)
    for _ in range(3):
        clock.advance(600_000)
        system.publisher.offered.clear()
        advance_all(system, runs, chance)
        assert [run.run_id for run in system.publisher.offered] == [run.run_id for run in sorted(runs)]
    assert {system.run(run.run_id).state for run in runs} == {Queued(reason="new")}


def test_runs_held_back_by_their_endpoint_go_before_younger_ones_once_it_takes_runs_again(
    system: LocalSystem, clock: FakeClock, size: int
) -> None:
    chance = random.Random(5)
    old = list(started(system, clock, chance, size // 2, [("1", None)]))
    make_ready(system, clock, old, chance)
    until = TimestampMs(clock.now() + 60_000)
    system.publisher.answer = lambda _: Deferred(until=until)
    advance_all(system, old, chance)
    clock.set(until)
    young = list(started_now(system, clock, size // 2))
    system.publisher.answer = lambda _: Published()
    system.publisher.offered.clear()
    advance_all(system, [*old, *young], chance)
    assert [run.run_id for run in system.publisher.offered] == [run.run_id for run in [*sorted(old), *sorted(young)]]


def started_now(system: LocalSystem, clock: FakeClock, size: int) -> Iterator[Expected]:
    """Runs of the highest priority, all of this millisecond."""
    for _ in range(size):
        asked = StartRun.model_validate({"workflow": "w", "version": "1", "options": {"priority": 0}})
        yield Expected(clock.now(), 0, system.server.call(NAMESPACE, asked).id, ("1", None))


def test_while_many_wait_for_another_offer_the_first_of_the_rest_is_offered(
    system: LocalSystem, clock: FakeClock, size: int
) -> None:
    """Those in front are looked past, not offered again too early, and never overtaken for good."""
    in_vain = list(started_now(system, clock, size // 2))
    system.publisher.answer = lambda run: Failed("refused") if run.run_id in {one.run_id for one in in_vain} else Published()
    advance_all(system, in_vain, random.Random(1))
    clock.advance(1)
    rest = list(started_now(system, clock, size // 2))
    system.publisher.offered.clear()
    advance_all(system, [*in_vain, *rest], random.Random(2))
    assert [run.run_id for run in system.publisher.offered] == [run.run_id for run in sorted(rest)]


def offered_by(system: LocalSystem, run: Expected) -> list[ReadyRun]:
    system.publisher.offered.clear()
    system.attention.advance(NAMESPACE, run.run_id)
    return system.publisher.offered


def test_a_hint_offers_ten_runs_at_most_and_those_that_are_first(system: LocalSystem, clock: FakeClock) -> None:
    runs = list(started_now(system, clock, 25))
    last = max(runs)
    ordered = [run.run_id for run in sorted(runs)]
    system.publisher.answer = lambda _: Published()
    assert [run.run_id for run in offered_by(system, last)] == ordered[:10]
    assert [run.run_id for run in offered_by(system, last)] == ordered[10:20]
    assert [run.run_id for run in offered_by(system, last)] == ordered[20:]
    assert offered_by(system, last) == []


def test_runs_that_cannot_be_read_hold_up_none_behind_them(system: LocalSystem, clock: FakeClock) -> None:
    for run in started_now(system, clock, 12):
        header = system.table.get(keys.header(NAMESPACE, run.run_id))
        assert header is not None
        system.table.write([Put({**header, "d": "no JSON"}, Always())], token="t")
    clock.advance(1)
    [healthy] = started_now(system, clock, 1)
    assert [run.run_id for run in offered_by(system, healthy)] == [healthy.run_id]


def test_a_run_behind_more_than_are_looked_past_is_offered_out_of_turn_rather_than_never(clock: FakeClock) -> None:
    system = LocalSystem(clock=clock)
    for run in started_now(system, clock, MAX_QUEUE_LOOKED_AT):
        system.store.commit(SaveRun(system.run(run.run_id).model_copy(update={"due_at": clock.now() + 60_000})))
    clock.advance(1)
    *_, last = started_now(system, clock, 2)
    assert [run.run_id for run in offered_by(system, last)] == [last.run_id]
