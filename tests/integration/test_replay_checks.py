"""Changed code against the histories of runs."""

import asyncio
from collections.abc import Iterator, Sequence

import pytest

from aiki_push import Run, fixed, task, workflow
from aiki_push.domain.errors import SettingsError
from aiki_push.domain.log_records import AnyRecord, UnknownRecord
from aiki_push.testing import DoesNotFit, Harness, Replayed, replay
from tests.integration.orders_to_replay import (
    MONTH_S,
    ORIGINAL,
    Order,
    called,
    charge_only,
    history_of,
    order_version,
    reserve,
    reserve_wait_ship,
    ship,
)


@pytest.fixture(autouse=True)
def forget_calls() -> Iterator[None]:
    called.clear()
    yield
    called.clear()


@pytest.fixture(scope="module")
def parked() -> Sequence[AnyRecord]:
    return history_of(ORIGINAL, days=1)


@pytest.fixture(scope="module")
def ended() -> Sequence[AnyRecord]:
    return history_of(ORIGINAL, days=40)


def test_unchanged_code_fits_and_executes_nothing(parked: Sequence[AnyRecord], ended: Sequence[AnyRecord]) -> None:
    called.clear()
    assert replay(ORIGINAL, ended) == Replayed(has_ended=True, output="shipped 7")
    assert replay(ORIGINAL, parked) == Replayed(waits=("timer",))
    assert called == []


def test_a_call_that_was_cut_off_is_open(ended: Sequence[AnyRecord]) -> None:
    begun = ended[: [record.type for record in ended].index("task_started") + 1]
    assert replay(ORIGINAL, begun) == Replayed(open_calls=("reserve",))


def test_code_that_goes_on_differently_says_what_comes_next(parked: Sequence[AnyRecord]) -> None:
    async def ship_at_once(run: Run, order: Order) -> str:
        await reserve.start(run, order)
        return await ship.start(run, order)

    assert replay(order_version(ship_at_once), parked) == Replayed(next_calls=("ship",))


def test_another_call_in_place_of_a_recorded_one_diverges_and_names_both(parked: Sequence[AnyRecord]) -> None:
    with pytest.raises(DoesNotFit, match=r"now calls ship \(call 1.*did not call reserve \(task") as raised:
        replay(order_version(lambda run, order: ship.start(run, order)), parked)
    assert raised.value.reason == "diverged"


def test_a_recorded_call_that_is_left_out_is_told(parked: Sequence[AnyRecord]) -> None:
    async def only_wait(run: Run, order: Order) -> str:
        await asyncio.sleep(MONTH_S)
        return "waited"

    result = replay(order_version(only_wait), parked)
    assert (result.waits, [call.split()[0] for call in result.unmade_calls]) == (("timer",), ["reserve"])


def test_code_that_returns_fits_whatever_it_leaves_out(parked: Sequence[AnyRecord]) -> None:
    async def in_the_background(run: Run, order: Order) -> str:
        shipping = asyncio.create_task(asyncio.wait_for(ship.start(run, order), 1))
        await asyncio.sleep(0)
        return "done" if not shipping.done() else "shipped"

    result = replay(order_version(in_the_background), parked)
    assert (result.has_ended, result.output, len(result.unmade_calls)) == (True, "done", 1)


def test_the_workflow_is_closed_afterwards_and_knows_why(parked: Sequence[AnyRecord]) -> None:
    closed: list[bool] = []

    async def closing(run: Run, order: Order) -> str:
        try:
            return await reserve_wait_ship(run, order)
        finally:
            closed.append(run.suspending)

    replay(order_version(closing), parked)
    assert closed == [True]


def test_an_output_that_does_not_fit_its_new_type_cannot_be_restored(parked: Sequence[AnyRecord]) -> None:
    @task("reserve")
    async def reserve_changed(order: Order) -> int:
        return 1

    async def changed(run: Run, order: Order) -> str:
        return str(await reserve_changed.start(run, order))

    with pytest.raises(DoesNotFit, match="reserve: output does not fit int") as raised:
        replay(order_version(changed), parked)
    assert raised.value.reason == "cannot_restore"


def test_an_input_that_does_not_fit_its_new_type_cannot_be_restored(parked: Sequence[AnyRecord]) -> None:
    class Larger(Order):
        amount: int

    @workflow("order").v("1.0.0")
    async def changed(run: Run, order: Larger) -> None: ...

    with pytest.raises(DoesNotFit, match="order: input does not fit Larger.*amount") as raised:
        replay(changed, parked)
    assert raised.value.reason == "cannot_restore"


def test_code_that_raises_where_the_run_did_not_does_not_fit(parked: Sequence[AnyRecord]) -> None:
    async def broken(run: Run, order: Order) -> str:
        await reserve.start(run, order)
        raise KeyError("forgotten")

    with pytest.raises(DoesNotFit, match="the workflow raises KeyError, which the run did not") as raised:
        replay(order_version(broken), parked)
    assert (raised.value.reason, type(raised.value.__cause__)) == ("raised", KeyError)


def test_code_that_fails_as_the_run_did_fits() -> None:
    version = order_version(charge_only)
    result = replay(version, history_of(version, days=1))
    assert result.has_ended
    assert result.error is not None
    assert result.error.name == "TaskFailed"
    assert called == ["charge"]


@pytest.mark.parametrize("then", ["waits", "is paused", "is cancelled"])
def test_code_that_fails_as_the_run_did_fits_before_its_next_attempt_too(then: str) -> None:
    version = order_version(charge_only).with_("retry", fixed(max_attempts=2, delay_ms=3_600_000))
    with Harness(version) as harness:

        async def scenario() -> str:
            handle = await version.start(harness.client, Order(order_id="7"))
            await harness.settle()
            if then != "waits":
                await (handle.pause() if then == "is paused" else handle.cancel())
            return handle.id

        history = harness.records(harness.run(scenario()))
    result = replay(version, history)
    assert (result.has_ended, result.error and result.error.name) == (True, "TaskFailed")


def test_code_that_fails_by_another_error_does_not_fit() -> None:
    async def broken(run: Run, order: Order) -> str:
        raise KeyError("forgotten")

    with pytest.raises(DoesNotFit, match="raises KeyError"):
        replay(order_version(broken), history_of(order_version(charge_only), days=1))


def test_code_that_touches_the_outside_world_does_not_fit(parked: Sequence[AnyRecord]) -> None:
    async def reaching_out(run: Run, order: Order) -> str:
        await reserve.start(run, order)
        return await asyncio.to_thread(str, 1)

    with pytest.raises(DoesNotFit, match=r"asyncio.to_thread\(\) was used in a workflow") as raised:
        replay(order_version(reaching_out), parked)
    assert raised.value.reason == "not_durable"


def test_a_record_of_a_newer_release_does_not_fit(parked: Sequence[AnyRecord]) -> None:
    with pytest.raises(DoesNotFit, match="a record of type 'from_the_future'") as raised:
        replay(ORIGINAL, [*parked, UnknownRecord(type="from_the_future", at=parked[-1].at)])
    assert raised.value.reason == "unknown_record"


def test_the_context_and_the_run_id_are_those_that_are_given(parked: Sequence[AnyRecord]) -> None:
    seen: list[object] = []

    async def looking(run: Run, order: Order) -> str:
        seen.append((run.id, run.context, run.attempt))
        return await reserve_wait_ship(run, order)

    replay(order_version(looking), parked, run_id="01KDVDNA000000000000000002", context="context")
    assert seen == [("01KDVDNA000000000000000002", "context", 1)]


async def test_a_coroutine_may_not_replay(parked: Sequence[AnyRecord]) -> None:
    with pytest.raises(SettingsError, match="called by a coroutine"):
        replay(ORIGINAL, parked)
