# mypy: ignore-errors
# pyright: strict
"""Events, children, sleeps and other runs, as authors write them: neither type checker says a word."""

import asyncio
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, assert_type
from uuid import UUID

from pydantic import BaseModel

from aiki_push import (
    Cancelled,
    ChildHandle,
    Client,
    Completed,
    Event,
    Failed,
    Finished,
    Handle,
    Peer,
    Received,
    Referenced,
    Run,
    Sent,
    Slept,
    TimedOut,
    event,
    exponential,
    task,
    workflow,
)
from aiki_push.errors import ChildFailed, IllegalTransition, NotFound, ReferenceConflict


class Order(BaseModel):
    order_id: str
    amount: int


@dataclass(frozen=True)
class Payment:
    transaction_id: str


@task("charge", expected_duration=timedelta(minutes=2))
async def charge(order: Order) -> Payment:
    return Payment(order.order_id)


@task("count", expected_duration=None)
def count() -> int:
    return 1


stopped = event("stopped")
paid = event("paid", Payment)
maybe_paid = event("maybe-paid", Payment | None)
ordered = event("ordered", list[Order], json="typed")

assert_type(stopped, Event[None])
assert_type(paid, Event[Payment])
assert_type(maybe_paid, Event[Payment | None])
assert_type(ordered, Event[list[Order]])
assert_type(paid.with_("reference.id", "payment-1"), Event[Payment])
assert_type(stopped.with_("reference.id", "stop"), Event[None])


@workflow("shipment").v("1.0.0")
async def shipment_v1(run: Run, order: Order) -> int:
    return order.amount


@workflow("audit").v("1.0.0")
async def audit_v1(run: Run) -> str | None:
    return None


async def events(run: Run, three_days: timedelta, maybe: timedelta | None) -> Payment | None:
    assert_type(await stopped.wait(run), Received[None])
    assert_type(await stopped.wait(run, timeout=three_days), Received[None] | TimedOut)
    assert_type(await maybe_paid.wait(run), Received[Payment | None])
    assert_type(await ordered.wait(run, timeout=maybe), Received[list[Order]] | TimedOut)
    assert_type((await paid.wait(run)).data, Payment)
    received = await paid.wait(run, timeout=maybe)
    assert_type(received, Received[Payment] | TimedOut)
    if isinstance(received, TimedOut):
        return None
    assert_type(received, Received[Payment])
    match await paid.wait(run, timeout=three_days):
        case Received(data=payment):
            return assert_type(payment, Payment)
        case TimedOut():
            return None


async def children(run: Run, order: Order, maybe: timedelta | None) -> int:
    child = await shipment_v1.start_as_child(run, order)
    assert_type(child, ChildHandle[int])
    assert_type(await audit_v1.start_as_child(run), ChildHandle[str | None])
    assert_type(await shipment_v1.with_("reference.id", "order-123").start_as_child(run, order), ChildHandle[int])
    assert_type(await shipment_v1.with_("delay", timedelta(minutes=5)).start_as_child(run, order), ChildHandle[int])
    assert_type(
        await shipment_v1.with_("reference", {"id": "order-123", "conflict_policy": "return_existing"})
        .with_("retry", exponential(max_attempts=3, base_delay_ms=10))
        .start_as_child(run, order),
        ChildHandle[int],
    )
    assert_type(await child.wait(), Finished[int])
    assert_type((await child.wait()).value(), int)
    result = await child.wait(timeout=maybe)
    assert_type(result, Finished[int] | TimedOut)
    if isinstance(result, TimedOut):
        await child.cancel("too slow")
        return 0
    match result.state:
        case Completed(output=output):
            assert_type(output, int)
        case Failed(error=error):
            run.logger.info(error.message)
        case Cancelled(explanation=explanation):
            run.logger.info(explanation or "cancelled")
    try:
        return result.value()
    except ChildFailed as failed:
        assert_type(failed.status, str)
        return -1


async def side_by_side(run: Run, order: Order) -> None:
    first, second = await asyncio.gather(shipment_v1.start_as_child(run, order), audit_v1.start_as_child(run))
    assert_type(await asyncio.gather(first.wait(), second.wait()), tuple[Finished[int], Finished[str | None]])
    waits = [asyncio.create_task(first.wait()), asyncio.create_task(first.wait())]
    done, _ = await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
    assert_type(done.pop().result(), Finished[int])


async def sleeps(run: Run) -> str:
    slept = await run.sleep("cooling-off", timedelta(days=1))
    assert_type(slept, Slept)
    assert_type(slept.woken_early, bool)
    assert_type(run.now(), datetime)
    assert_type(run.uuid(), UUID)
    assert_type(run.random(), float)
    return str(run.uuid())


async def other_runs(run: Run, run_id: str, child: ChildHandle[int]) -> None:
    peer = run.peer(run_id)
    assert_type(peer, Peer)
    any_run: Peer = child
    assert_type(await any_run.pause(), None)
    assert_type(await peer.resume(), None)
    assert_type(await peer.cancel(), None)
    assert_type(await peer.wakeup("cooling-off"), None)
    assert_type(await stopped.send(peer), bool)
    assert_type(await paid.send(child, Payment("t-1")), bool)
    assert_type(await maybe_paid.send(peer, None), bool)
    assert_type(await ordered.send(peer, []), bool)
    try:
        await child.wakeup()
    except (IllegalTransition, NotFound, ReferenceConflict) as refused:
        run.logger.info(refused.detail)


async def from_outside(client: Client, handle: Handle[int], other: Handle[str]) -> None:
    assert_type(await stopped.send(handle), bool)
    assert_type(await paid.send(other, Payment("t-1")), bool)
    assert_type(await maybe_paid.send(handle, Payment("t-1")), bool)
    assert_type(shipment_v1.referenced("order-123"), Referenced)
    outcomes = await paid.multicast(
        client, [handle, other, handle.id, "01M8MER5BZSFP81HXYFC8VWCSD", shipment_v1.referenced("order-123")], Payment("t-1")
    )
    assert_type(outcomes, tuple[Sent, ...])
    assert_type(await stopped.multicast(client, [handle]), tuple[Sent, ...])
    assert_type(await stopped.multicast(client, (handle.id,)), tuple[Sent, ...])
    ids: list[str] = [outcome.run_id for outcome in outcomes if outcome.delivered and outcome.run_id]
    await stopped.multicast(client, ids)
    await handle.pause()
    await handle.cancel("ordered twice")
    await handle.wakeup("cooling-off")


def any_event(given: Event[Any]) -> str:
    return given.name


def any_child(child: ChildHandle[object]) -> str:
    return child.id


async def covariant(run: Run) -> None:
    any_event(stopped)
    any_event(maybe_paid)
    any_child(await audit_v1.start_as_child(run))
