"""The sleeps, events, children and races of the guide do what the text around them says."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from aiki_push import Handle
from aiki_push.testing import FAKE_NOW, Harness
from tests.docs.test_docs_examples import GUIDE, program

DAY_S = 86_400

Act: Any = Callable[[ModuleType, Handle[Any]], Awaitable[object]]


@pytest.fixture(scope="module")
def guide(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ModuleType]:
    folder: Path = tmp_path_factory.mktemp("guide")
    with program(GUIDE, "page.py", folder) as module:
        yield module


def outcome_of(
    guide: ModuleType, name: str, given: object, act: Act | None = None, others: tuple[str, ...] = ()
) -> tuple[Any, float]:
    """What a run of that workflow returns, to which `act` is done a day after its start; and after how many days."""
    version = getattr(guide, name)

    async def scenario() -> tuple[Any, float]:
        handle = await version.start(harness.client, version.input_type.decode(given, at="input"))
        if act is not None:
            await asyncio.sleep(DAY_S)
            await act(guide, handle)
        output = (await handle.wait()).value()
        return output, round((harness.now - FAKE_NOW) / DAY_S / 1_000, 2)

    with Harness(version, *(getattr(guide, other) for other in others)) as harness:
        return harness.run(scenario())


MUG = {"article": "mug", "amount": 2}


async def buy(guide: ModuleType, handle: Handle[Any]) -> None:
    await guide.buy(handle)


async def pay(guide: ModuleType, handle: Handle[Any]) -> None:
    assert await guide.tell_of_payment(handle, "t-1")
    assert await guide.tell_of_payment(handle, "t-1")


async def stop(guide: ModuleType, handle: Handle[Any]) -> None:
    assert await guide.close_the_shop(handle.client, ["01M8MER5BZSFP81HXYFC8VWCSD", handle.id]) == [handle.id]


async def stop_and_pay(guide: ModuleType, handle: Handle[Any]) -> None:
    await stop(guide, handle)
    await pay(guide, handle)


@pytest.mark.parametrize(
    ("name", "given", "act", "output", "days"),
    [
        ("trial", "ada", None, "the trial of ada is over", 30),
        ("trial", "ada", buy, "ada bought early", 1),
        ("reminder", MUG, None, "given up", 3),
        ("order", MUG, None, "nobody paid for the mug", 3),
        ("order", MUG, pay, "paid by t-1", 1),
        ("patient_order", MUG, None, "nobody came", 1),
    ],
)
def test_a_wait_ends_by_what_comes_or_by_its_time(
    guide: ModuleType, name: str, given: object, act: Act | None, output: str, days: float
) -> None:
    assert outcome_of(guide, name, given, act) == (output, days)


@pytest.mark.parametrize(("acts", "output"), [([stop, pay], "stopped"), ([pay, stop], "charged 500")])
def test_the_race_is_won_by_what_came_first(guide: ModuleType, acts: list[Act], output: str) -> None:
    async def scenario() -> Any:
        handle = await guide.patient_order.start(harness.client, guide.Item(article="mug", amount=2))
        for act in acts:
            await act(guide, handle)
        return (await handle.wait()).value()

    with Harness(guide.patient_order) as harness:
        assert harness.run(scenario()) == output


def test_children_work_side_by_side_and_one_that_fails_keeps_no_other_from_its_end(guide: ModuleType) -> None:
    items = [{"article": article, "amount": amount} for article, amount in (("mug", 24), ("jug", 101), ("cup", 48))]
    assert outcome_of(guide, "shipment", items, others=("parcel",)) == (["24 × mug", "failed: jug", "48 × cup"], 2)


def test_a_child_with_a_reference_is_the_run_that_has_it_or_a_conflict(guide: ModuleType) -> None:
    async def scenario() -> list[str]:
        starts = [guide.dispatch.start(harness.client, guide.Item(article="mug", amount=amount)) for amount in (2, 2, 3)]
        return [(await (await start).wait()).value() for start in starts]

    with Harness(guide.dispatch, guide.parcel) as harness:
        assert harness.run(scenario()) == ["2 × mug", "2 × mug", "already on its way"]


def test_an_earlier_run_is_cancelled_unless_there_is_none_or_it_has_ended(guide: ModuleType) -> None:
    async def scenario() -> list[str]:
        earlier = await guide.trial.start(harness.client, "ada")
        said = []
        for run_id in (earlier.id, earlier.id, "01M8MER5BZSFP81HXYFC8VWCSD"):
            handle = await guide.successor.start(harness.client, run_id)
            said.append((await handle.wait()).value())
        ended = await earlier.wait()
        assert ended.state.status == "cancelled"
        return said

    with Harness(guide.trial, guide.successor) as harness:
        assert harness.run(scenario()) == ["it is cancelled", "it has ended", "there is no such run"]


def test_a_workflow_pays_for_an_order_that_runs_elsewhere(guide: ModuleType) -> None:
    async def scenario() -> bool:
        waiting = await guide.order.start(harness.client, guide.Item(article="mug", amount=2))
        paying = await guide.cashier.start(harness.client, waiting.id)
        assert (await waiting.wait()).value().startswith("paid by ")
        sent: bool = (await paying.wait()).value()
        return sent

    with Harness(guide.order, guide.cashier) as harness:
        assert harness.run(scenario())


def test_a_raffle_has_one_of_the_names_and_the_day(guide: ModuleType) -> None:
    (said, _) = outcome_of(guide, "raffle", ["ada"])
    assert said.startswith("2026-01-01: ada (")


def test_one_run_is_told_by_its_reference(guide: ModuleType) -> None:
    async def scenario() -> list[bool]:
        told = [await guide.stop_one(harness.client)]
        await guide.order_123.start(harness.client, guide.Item(article="mug", amount=2))
        return [*told, await guide.stop_one(harness.client)]

    with Harness(guide.sale_v1) as harness:
        assert harness.run(scenario()) == [False, True]
