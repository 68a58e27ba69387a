"""The whole way of a push: publisher, network, endpoint, claim, execution, on a server in memory."""

import asyncio
import logging
import threading
from collections.abc import Sequence
from contextlib import ExitStack

import pytest

from aiki_push.apps.endpoint.endpoint import Endpoint, endpoint
from aiki_push.ports.publisher import Declined, Failed, Outcome, Published, ReadyRun
from aiki_push.sdk.run import Run
from aiki_push.sdk.task import task
from aiki_push.sdk.workflow import workflow
from aiki_push.sdk.workflow_version import AnyWorkflowVersion
from aiki_push.testing import FakeClock
from tests.integration.endpoint_server import endpoint_server
from tests.integration.pushing import PUBLIC, SECRET, SHARED, only, publisher
from tests.local_system import NAMESPACE, LocalSystem
from tests.unit.adapters.delivery.delivery_examples import endpoint_at

orders = workflow("order")


@task("charge")
async def charge(amount: int) -> int:
    return amount * 2


@orders.v("1.0.0")
async def order_v1(run: Run, amount: int) -> int:
    return await charge.start(run, amount)


def start(system: LocalSystem, amount: int = 1) -> ReadyRun:
    """A new run, ready to be offered."""

    async def started() -> str:
        return (await order_v1.start(system.client(), amount)).id

    return ready(system, asyncio.run(started()))


def ready(system: LocalSystem, run_id: str) -> ReadyRun:
    run = system.run(run_id)
    return ReadyRun(
        namespace=NAMESPACE,
        run_id=run.id,
        workflow=run.workflow,
        version=run.version,
        pool=None,
        priority=5,
        revision=run.revision,
        ready_at=run.created_at,
        offer=1,
    )


def endpoint_of(system: LocalSystem, *versions: AnyWorkflowVersion, trusted: Sequence[str] = (PUBLIC,)) -> Endpoint:
    public_keys = [key for key in trusted if key.startswith("whpk_")]
    secrets = [key for key in trusted if key.startswith("whsec_")]
    return endpoint(
        workflows=versions or [order_v1], client=system.client(), public_keys=public_keys, hmac_secrets=secrets, audience="orders"
    )


@pytest.mark.parametrize("secret", [None, SHARED])
def test_a_pushed_run_is_executed_and_a_second_push_of_it_is_not(secret: str | None, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    system = LocalSystem()
    run = start(system)
    made = endpoint_of(system, trusted=[secret or PUBLIC])
    with endpoint_server(made.asgi) as url:
        target = endpoint_at(url, namespace=NAMESPACE, audience="orders", secret=secret)
        with publisher(target) as pushing:
            assert pushing.publish([run]) == [Published()]
            after = system.run(run.run_id)
            assert pushing.publish([run]) == [Published()]

    assert after.state.status == "completed"
    assert system.run(run.run_id) == after
    for text in (SECRET, SHARED):
        assert text.partition("_")[2] not in caplog.text


def test_what_an_endpoint_refuses_comes_back_as_the_outcome_of_the_offer() -> None:
    system = LocalSystem()
    run = start(system)
    refunds = workflow("refund")

    @refunds.v("1.0.0")
    async def refund_v1(run: Run) -> str:
        return run.id

    refused = (
        "endpoint orders refused the signature (401): compare the keys it trusts, its audience and its clock with the server's"
    )
    rows: Sequence[tuple[AnyWorkflowVersion, str | None, str | None, Outcome]] = [
        (order_v1, "orders", SHARED, Failed(refused)),
        (order_v1, "others", None, Failed(refused)),
        (order_v1, None, None, Failed(refused)),
        (refund_v1, "orders", None, Declined()),
    ]
    for version, audience, secret, expected in rows:
        with endpoint_server(endpoint_of(system, version).asgi) as url, ExitStack() as stack:
            pushing = stack.enter_context(publisher(endpoint_at(url, namespace=NAMESPACE, audience=audience, secret=secret)))
            assert pushing.publish([run]) == [expected]
    assert system.run(run.run_id).state.status == "queued"


@pytest.mark.parametrize(("skew_ms", "is_taken"), [(-120_000, False), (-29_000, True), (29_000, True), (120_000, False)])
def test_clocks_may_be_apart_as_far_as_the_tolerance_in_either_direction(
    skew_ms: int, is_taken: bool, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    system = LocalSystem(clock=FakeClock())
    run = start(system)
    skewed = FakeClock()
    skewed.advance(skew_ms)
    with endpoint_server(endpoint_of(system).asgi) as url, ExitStack() as stack:
        pushing = stack.enter_context(publisher(endpoint_at(url, namespace=NAMESPACE, audience="orders"), clock=skewed))
        outcome = only(pushing.publish([run]))
    assert isinstance(outcome, Published if is_taken else Failed)
    assert system.run(run.run_id).state.status == ("completed" if is_taken else "queued")
    expired = [record.levelname for record in caplog.records if record.getMessage().startswith("push refused: expired")]
    assert expired == ([] if is_taken else ["INFO"])


def test_a_pusher_who_hangs_up_does_not_end_the_segment() -> None:
    system = LocalSystem()
    has_begun, may_end = threading.Event(), threading.Event()

    @task("take-long")
    def take_long() -> str:
        has_begun.set()
        may_end.wait()
        return "done"

    slow = workflow("order")

    @slow.v("1.0.0")
    async def slow_v1(run: Run) -> str:
        return await take_long.start(run)

    async def started() -> str:
        return (await slow_v1.start(system.client())).id

    run_id = asyncio.run(started())
    with endpoint_server(endpoint_of(system, slow_v1).asgi) as url:
        target = endpoint_at(url, namespace=NAMESPACE, audience="orders")
        with publisher(target, push_timeout_ms=300) as pushing:
            assert pushing.publish([ready(system, run_id)]) == [Published()]
        # The publisher is closed, its connection gone, and the task still at work.
        assert has_begun.wait()
        assert system.run(run_id).state.status == "running"
        may_end.set()
    assert system.run(run_id).state.status == "completed"
