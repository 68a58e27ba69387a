"""Events: what arrives, once, and as what it was sent."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

import pytest
from pydantic import BaseModel

from aiki_push import Event, Received, Referenced, Run, Sent, TimedOut, WorkflowVersion, event, task, workflow
from aiki_push.domain.run_states import Stalled
from aiki_push.testing import FAKE_NOW, Harness
from tests.unit.sdk.bodies import output_of, version_of

DAY = timedelta(days=1)


class Payment(BaseModel):
    transaction_id: str


@dataclass(frozen=True)
class Line:
    article: str


class Place(NamedTuple):
    x: int
    y: int


PAYMENT = Payment(transaction_id="t-1")
stopped = event("stopped")
paid = event("paid", Payment)

ARRIVING: list[tuple[Event[Any], Any]] = [
    (event("told", Payment), PAYMENT),
    (event("told", Payment | None), PAYMENT),
    (event("told", Payment | None), None),
    (event("told", list[Line]), [Line("mug"), Line("cup")]),
    (event("told", Place), Place(1, 2)),
    (event("told", int), 5),
    (event("told", dict[str, Any]), {"a": [1, None, {"b": "ü"}]}),
    (event("told", datetime, json="typed"), datetime(2024, 1, 2, tzinfo=UTC)),
    (event("told", str), "a" * 100_000),
]


def told_of(told: Event[Any], send: Callable[[Harness, Any], Awaitable[Any]], times: int = 1) -> list[Any]:
    """What a run receives by that event, so often, once `send` has been called with the run's handle."""

    received: list[Any] = []

    async def body(run: Run) -> Any:
        received[:] = [await told.wait(run) for _ in range(times)]

    async def scenario() -> None:
        handle = await version.start(harness.client)
        await send(harness, handle)
        await handle.wait()

    version = version_of(body)
    with Harness(version) as harness:
        harness.run(scenario())
    return received


@pytest.mark.parametrize("is_parked", [False, True])
@pytest.mark.parametrize(("told", "data"), ARRIVING)
def test_data_arrives_as_what_it_was_sent(told: Event[Any], data: Any, *, is_parked: bool) -> None:
    async def send(harness: Harness, handle: Any) -> None:
        if is_parked:
            await harness.settle()
        assert await told.send(handle, data)

    assert told_of(told, send) == [Received(data)]


@pytest.mark.parametrize(("told", "data"), ARRIVING)
def test_data_arrives_from_a_workflow_as_what_it_was_sent(told: Event[Any], data: Any) -> None:
    received: list[Any] = []

    async def listening(run: Run) -> Any:
        received.append(await told.wait(run))

    async def body(run: Run) -> Any:
        child = await listener.start_as_child(run)
        assert await told.send(child, data)
        await child.wait()

    listener = version_of(listening, "listener")
    assert (output_of(body, listener), received) == (None, [Received(data)])


def test_an_event_without_data_arrives_as_none() -> None:
    async def send(harness: Harness, handle: Any) -> None:
        await stopped.send(handle)

    assert told_of(stopped, send) == [Received(None)]


def test_each_event_is_taken_by_one_wait_in_the_order_in_which_they_were_sent() -> None:
    async def send(harness: Harness, handle: Any) -> None:
        for number in range(3):
            await told.send(handle, number)

    told = event("told", int)
    assert told_of(told, send, times=3) == [Received(0), Received(1), Received(2)]


def test_an_event_of_another_name_ends_no_wait() -> None:
    async def send(harness: Harness, handle: Any) -> None:
        await event("told-you", int).send(handle, 1)
        await told.send(handle, 2)

    told = event("told", int)
    assert told_of(told, send) == [Received(2)]


def test_the_same_reference_is_the_same_event_and_another_or_none_is_another() -> None:
    async def send(harness: Harness, handle: Any) -> None:
        once = told.with_("reference.id", "payment 1")
        assert [await once.send(handle, 1), await once.send(handle, 1), await told.with_("reference.id", "2").send(handle, 2)]
        assert [await told.send(handle, 3), await told.send(handle, 3)]

    told = event("told", int)
    assert told_of(told, send, times=4) == [Received(1), Received(2), Received(3), Received(3)]


def test_a_wait_with_a_timeout_ends_by_the_event_or_by_its_time() -> None:
    async def body(run: Run) -> Any:
        first = await paid.wait(run, timeout=DAY)
        second = await paid.wait(run, timeout=DAY)
        return [first == Received(PAYMENT), second == TimedOut(), run.now().isoformat()]

    async def scenario() -> Any:
        handle = await version.start(harness.client)
        await harness.settle()
        await paid.send(handle, PAYMENT)
        return (await handle.wait()).value()

    version = version_of(body)
    with Harness(version) as harness:
        assert harness.run(scenario()) == [True, True, "2026-01-02T00:00:00+00:00"]


def test_without_a_timeout_a_wait_lasts_for_years() -> None:
    async def body(run: Run) -> Any:
        await paid.wait(run, timeout=None)
        return run.now().year

    async def scenario() -> Any:
        handle = await version.start(harness.client)
        assert isinstance(await handle.wait(timeout=timedelta(days=3_000)), TimedOut)
        await paid.send(handle, PAYMENT)
        return (await handle.wait()).value()

    version = version_of(body)
    with Harness(version) as harness:
        assert harness.run(scenario()) == 2034


def test_a_run_that_has_ended_takes_no_event() -> None:
    async def ending(run: Run) -> Any:
        return None

    async def body(run: Run) -> Any:
        child = await ended.start_as_child(run)
        await child.wait()
        return [await paid.send(child, PAYMENT), await stopped.send(run.peer(child.id))]

    async def scenario() -> Any:
        handle = await ended.start(harness.client)
        await handle.wait()
        return [await paid.send(handle, PAYMENT), await stopped.send(handle)]

    ended = version_of(ending, "ended")
    assert output_of(body, ended) == [False, False]
    with Harness(ended) as harness:
        assert harness.run(scenario()) == [False, False]


def test_a_multicast_says_what_became_of_it_for_each_run_in_their_order() -> None:
    async def body(run: Run) -> Any:
        return (await paid.wait(run)).data.transaction_id

    async def scenario() -> None:
        first, second, ended = [await version.start(harness.client) for _ in range(3)]
        third = await version.with_("reference.id", "order-123").start(harness.client)
        await ended.cancel()
        unknown = "01M8MER5BZSFP81HXYFC8VWCSD"
        found, lost = version.referenced("order-123"), version.referenced("order-124")
        sent = await paid.multicast(harness.client, [first, ended, unknown, found, second.id, lost], PAYMENT)
        assert sent == (
            Sent(first.id, delivered=True),
            Sent(ended.id, delivered=False),
            Sent(None, delivered=False),
            Sent(third.id, delivered=True),
            Sent(second.id, delivered=True),
            Sent(None, delivered=False),
        )
        assert [(await handle.wait()).value() for handle in (first, second, third)] == ["t-1"] * 3

    version = version_of(body)
    with Harness(version) as harness:
        harness.run(scenario())


def test_a_multicast_to_nobody_has_no_outcome_and_one_to_very_many_has_all() -> None:
    async def body(run: Run) -> Any:
        await stopped.wait(run)

    async def scenario() -> None:
        handles = [await version.start(harness.client) for _ in range(101)]
        sent = await stopped.multicast(harness.client, handles)
        assert sent == tuple(Sent(handle.id, delivered=True) for handle in handles)
        assert await stopped.multicast(harness.client, []) == ()

    version = version_of(body)
    with Harness(version) as harness:
        harness.run(scenario())


def test_data_that_does_not_fit_the_waiting_code_stalls_the_run_and_names_the_event() -> None:
    async def body(run: Run) -> Any:
        try:
            await paid.wait(run)
        except Exception:
            return "caught"

    async def scenario() -> None:
        handle = await version.start(harness.client)
        await event("paid", dict[str, int]).send(handle, {"amount": 5})
        await harness.settle()
        assert (await handle.refresh()).state == Stalled(reason="cannot_restore")
        assert handle.run.explanation == "paid: data does not fit Payment: transaction_id: Field required"

    version = version_of(body)
    with Harness(version) as harness:
        harness.run(scenario())


def test_a_field_with_a_default_added_to_the_data_does_not_make_it_another_event() -> None:
    class Told(BaseModel):
        name: str

    class Later(BaseModel):
        name: str
        loud: bool = False

    def telling(told: Event[Any], data: BaseModel) -> WorkflowVersion[[str], bool]:
        @workflow("teller").v("1.0.0")
        async def teller(run: Run, listener: str) -> bool:
            sent = await told.send(run.peer(listener), data)
            await run.sleep("nap", DAY)
            return await done.start(run, sent)

        return teller

    @task("done")
    async def done(sent: bool) -> bool:  # noqa: FBT001 - a task takes one input
        return sent

    async def listening(run: Run) -> Any:
        await run.sleep("nap", 3 * DAY)

    async def scenario() -> bool:
        target = await listener.start(harness.client)
        handle = await before.start(harness.client, target.id)
        await harness.settle()
        harness.add(after)
        return (await handle.wait()).value()

    before, after = telling(event("told", Told), Told(name="a")), telling(event("told", Later), Later(name="a"))
    listener = version_of(listening, "listener")
    with Harness(before, listener) as harness:
        assert harness.run(scenario())
        assert harness.now == FAKE_NOW + 86_400_000


def test_events_and_references_are_shown_by_name() -> None:
    async def body(run: Run) -> Any: ...

    assert repr(paid.with_("reference.id", "secret")) == "Event(paid)"
    assert version_of(body).referenced("order-123") == Referenced("tested", "1.0.0", "order-123")
