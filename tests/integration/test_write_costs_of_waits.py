"""What waiting costs: parks, events, early wakes, controls. Every request counted, in DynamoDB's write units too."""

from collections.abc import Callable
from datetime import timedelta

import pytest

from aiki_push import Run, event, workflow
from aiki_push.adapters.storage.table import Table
from aiki_push.domain.run_states import PARKED, Status
from aiki_push.ports.api.checkpoints import Park, SegmentEnd, Yield
from aiki_push.ports.api.claims import Inbox
from aiki_push.ports.api.events import SendEvent
from aiki_push.ports.api.runs import RunView
from aiki_push.sdk.replay.claim_keeper import ThreadKeeper
from aiki_push.testing import CountingTable, Counts, FakeClock
from tests.integration.controls import asleep, call, cancel, owned, pause, resume, wake_up
from tests.integration.owners import claim, completed, started
from tests.integration.waiting_runs import ENDS, FAR, run_in, wait
from tests.integration.write_costs import CLAIM, FINISHING, Writes, segment_cost, single, sum_of, transaction, writes
from tests.local_system import NAMESPACE, LocalSystem

paid = event("paid", int)


@workflow("listener").v("1.0.0")
async def listener(run: Run, times: int) -> int:
    return sum([(await paid.wait(run)).data for _ in range(times)])


@workflow("sleeper").v("1.0.0")
async def sleeper(run: Run) -> None:
    await run.sleep("until-tomorrow", timedelta(days=1))


@pytest.fixture
def counting(table: Table) -> CountingTable:
    return CountingTable(table)


@pytest.fixture
def system(counting: CountingTable) -> LocalSystem:
    return LocalSystem(counting, clock=FakeClock())


# ---- parks


async def test_a_park_on_a_sleep_is_one_write_of_one_unit(system: LocalSystem, counting: CountingTable) -> None:
    handle = await sleeper.start(system.client())
    assert await segment_cost(system, counting, sleeper, handle.id) == sum_of(CLAIM, single())


async def test_a_park_on_an_event_is_one_unit_and_every_fourth_in_a_row_seals_the_tail_for_four(
    system: LocalSystem, counting: CountingTable
) -> None:
    handle = await listener.start(system.client(), 8)
    parks = []
    for _ in range(8):
        parks.append(await segment_cost(system, counting, listener, handle.id))
        await paid.send(handle, 5)
    assert parks == [sum_of(CLAIM, park) for park in [*[single()] * 3, transaction(2, 4)] * 2]
    assert await segment_cost(system, counting, listener, handle.id) == sum_of(CLAIM, FINISHING)


@pytest.mark.parametrize("end_of_segment", [Yield(), ENDS["awaiting_retry"], ENDS["stalled"]], ids=lambda end: end.to)
def test_a_yield_a_retry_and_a_stall_are_one_write_of_one_unit(
    system: LocalSystem, counting: CountingTable, end_of_segment: SegmentEnd
) -> None:
    owner = owned(system)
    owner.append(started("a"))
    counting.reset()
    owner.send(owner.checkpoint(completed("a"), end=end_of_segment))
    assert writes(counting.reset()) == single()


def test_a_park_that_is_refused_because_a_message_came_writes_nothing(system: LocalSystem, counting: CountingTable) -> None:
    owner = owned(system)
    wake_up(system, owner.claimed.run.id)
    counting.reset()
    owner.send(owner.checkpoint(end=Park(waits=(wait("event", "paid"),), seen_seq=0)))
    assert counting.reset() == Counts(gets=1, queries=1)


# ---- messages


async def test_an_event_is_one_transaction_of_six_units_whether_it_wakes_or_not_and_a_repetition_writes_nothing(
    system: LocalSystem, counting: CountingTable
) -> None:
    handle = await listener.start(system.client(), 1)
    await segment_cost(system, counting, listener, handle.id)
    sent = paid.with_("reference.id", "payment 1")
    counting.reset()
    await sent.send(handle, 5)
    assert counting.reset() == Counts(transactions=1, items_written=3, write_units=6, gets=1)
    await paid.send(handle, 5)  # already woken
    assert counting.reset() == Counts(transactions=1, items_written=3, write_units=6, gets=1)
    await sent.send(handle, 5)
    assert counting.reset() == Counts(transactions=1, items_written=0, write_units=6, gets=1)


def test_an_early_wake_is_one_transaction_of_four_units(system: LocalSystem, counting: CountingTable) -> None:
    run_id = asleep(system, FAR)
    counting.reset()
    wake_up(system, run_id)
    assert counting.reset() == Counts(transactions=1, items_written=2, write_units=4, gets=2)


def test_the_end_of_a_time_is_one_write_of_one_unit(system: LocalSystem, counting: CountingTable) -> None:
    run_id = asleep(system, system.clock.now())
    counting.reset()
    system.attention.advance(NAMESPACE, run_id)
    assert counting.reset() == Counts(single_writes=1, items_written=1, write_units=1, gets=1)


# ---- controls

CONTROLS: dict[str, Callable[[LocalSystem, str], RunView]] = {"pause": pause, "resume": resume, "cancel": cancel}


@pytest.mark.parametrize(
    ("control", "status", "cost"),
    [
        *[("pause", status, single()) for status in ("queued", "scheduled", "awaiting_retry", *sorted(PARKED))],
        *[("cancel", status, single()) for status in ("queued", "paused", "stalled", "awaiting_retry", *sorted(PARKED))],
        ("resume", "paused", single()),
        ("pause", "running", transaction(2, 4)),
        ("cancel", "running", transaction(2, 4)),
    ],
)
def test_a_control_is_one_write_of_one_unit_and_takes_a_running_run_away_in_a_transaction_of_four(
    system: LocalSystem, counting: CountingTable, control: str, status: Status, cost: Writes
) -> None:
    run_id = run_in(system, status)
    counting.reset()
    CONTROLS[control](system, run_id)
    assert writes(counting.reset()) == cost


# ---- reads


@pytest.mark.parametrize("steps", [0, 50])
def test_a_claim_reads_the_header_and_then_everything_in_one_query(
    system: LocalSystem, counting: CountingTable, steps: int
) -> None:
    owner = owned(system)
    for number in range(steps):
        owner.append(started(f"task-{number}"))
    run_id = owner.claimed.run.id
    owner.send(owner.checkpoint(end=Park(waits=(wait("event", "paid"),), seen_seq=0)))
    call(system, SendEvent(run_id=run_id, event="paid", data=5))
    counting.reset()
    claim(system, run_id, "claim-2")
    assert counting.reset() == Counts(single_writes=1, items_written=1, write_units=1, gets=1, queries=1)


async def test_who_keeps_a_claim_asks_for_news_by_one_get_and_reads_the_inbox_only_where_there_is_some(
    system: LocalSystem, counting: CountingTable
) -> None:
    heard: list[Inbox] = []
    owner = owned(system)
    keeper = ThreadKeeper(
        system.api, owner.claimed, interval_ms=30_000, clock=system.clock, on_lost=lambda: None, on_news=heard.append
    )
    counting.reset()
    assert await keeper.ask(system.api())
    assert counting.reset() == Counts(gets=1)
    wake_up(system, owner.claimed.run.id)
    counting.reset()
    assert await keeper.ask(system.api())
    assert counting.reset() == Counts(gets=1, queries=1)
    assert await keeper.ask(system.api())
    assert counting.reset() == Counts(gets=1)
    assert [message.key for news in heard for message in news.messages] == ["*"]
