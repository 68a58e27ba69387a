"""Offering ready runs: to whom, when again, and what is shown of what went wrong."""

import pytest

from aiki_push.adapters.storage import keys
from aiki_push.adapters.storage.table import Always, Put, Table
from aiki_push.domain.limits import Limits
from aiki_push.domain.run import Offer
from aiki_push.domain.run_states import Queued, Stalled
from aiki_push.domain.values import TimestampMs
from aiki_push.ports.api.controls import RequeueRun
from aiki_push.ports.api.endpoints import PutEndpoint, WorkflowVersionField
from aiki_push.ports.api.runs import GetRun, StartRun
from aiki_push.ports.publisher import Declined, Deferred, Failed, Outcome, Published, ReadyRun
from aiki_push.server.attention.sweep import SweepPlan, Swept, sweep
from aiki_push.testing import FakeClock
from tests.integration.owners import claim, start
from tests.local_system import NAMESPACE, LocalSystem

DAY_MS = 86_400_000


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def system(table: Table, clock: FakeClock) -> LocalSystem:
    return LocalSystem(table, clock=clock, limits=Limits(max_age_ms=DAY_MS))


def answering(system: LocalSystem, outcome: Outcome) -> None:
    system.publisher.answer = lambda _: outcome


def advance(system: LocalSystem, run_id: str) -> None:
    system.attention.advance(NAMESPACE, run_id)


@pytest.mark.parametrize(
    ("outcome", "wait_ms", "error"),
    [
        (Published(), 5_000, None),
        (Failed("502 from the endpoint"), 5_000, "502 from the endpoint"),
        (Declined(), 30_000, "every endpoint declined the run's version"),
        (Declined(has_route=False), DAY_MS, "no endpoint is registered for the run's workflow, version and pool"),
    ],
    ids=["published", "failed", "declined", "no route"],
)
def test_the_next_offer_is_due_by_what_the_last_one_brought(
    system: LocalSystem, clock: FakeClock, outcome: Outcome, wait_ms: int, error: str | None
) -> None:
    answering(system, outcome)
    run_id = start(system)
    advance(system, run_id)
    run = system.run(run_id)
    assert (run.due_at, run.offer, run.state) == (
        clock.now() + wait_ms,
        Offer(attempts=1, last_error=error),
        Queued(reason="new"),
    )


def test_a_deferred_offer_is_made_when_the_endpoint_asked_for(system: LocalSystem, clock: FakeClock) -> None:
    until = TimestampMs(clock.now() + 77_000)
    answering(system, Deferred(until=until))
    run_id = start(system)
    advance(system, run_id)
    assert system.run(run_id).due_at == until


def test_waits_between_offers_double_up_to_five_minutes(system: LocalSystem, clock: FakeClock) -> None:
    answering(system, Failed("refused"))
    run_id = start(system)
    waits = []
    for _ in range(9):
        advance(system, run_id)
        due_at = system.run(run_id).due_at
        assert due_at is not None
        waits.append(due_at - clock.now())
        clock.set(due_at)
    assert waits == [5_000, 5_000, 10_000, 20_000, 40_000, 80_000, 160_000, 300_000, 300_000]


def test_an_offer_names_all_that_a_push_needs(system: LocalSystem, clock: FakeClock) -> None:
    run_id = start(system)
    advance(system, run_id)
    assert system.publisher.offered == [
        ReadyRun(
            namespace=NAMESPACE,
            run_id=run_id,
            workflow="w",
            version="1",
            pool=None,
            priority=5,
            revision=0,
            ready_at=clock.now(),
            offer=1,
        )
    ]


def test_a_hint_for_one_run_offers_the_first_of_its_queue_in_order(system: LocalSystem, clock: FakeClock) -> None:
    late = system.server.call(NAMESPACE, StartRun(workflow="w", version="1")).id
    clock.advance(-1)
    first = system.server.call(NAMESPACE, StartRun(workflow="w", version="1")).id
    urgent = system.server.call(
        NAMESPACE, StartRun.model_validate({"workflow": "w", "version": "1", "options": {"priority": 0}})
    ).id
    system.server.call(NAMESPACE, StartRun(workflow="w", version="2"))
    clock.advance(1)
    advance(system, late)
    assert [run.run_id for run in system.publisher.offered] == [urgent, first, late]


def test_an_offer_in_progress_keeps_other_deliverers_away(system: LocalSystem) -> None:
    run_id = start(system)

    def offered_meanwhile(_: ReadyRun) -> Outcome:
        advance(system, run_id)
        return Published()

    system.publisher.answer = offered_meanwhile
    advance(system, run_id)
    assert len(system.publisher.offered) == 1


def test_an_outcome_that_comes_after_the_claim_changes_nothing(system: LocalSystem) -> None:
    run_id = start(system)

    def claimed_meanwhile(_: ReadyRun) -> Outcome:
        claim(system, run_id)
        return Failed("the connection was reset while the run was being executed")

    system.publisher.answer = claimed_meanwhile
    advance(system, run_id)
    run = system.run(run_id)
    assert (run.state.status, run.offer) == ("running", Offer())


def test_a_run_that_nobody_takes_for_a_day_is_stalled_and_a_requeue_resumes_it(system: LocalSystem, clock: FakeClock) -> None:
    answering(system, Failed("connection refused"))
    run_id = start(system)
    advance(system, run_id)
    clock.advance(DAY_MS - 1)
    advance(system, run_id)
    assert system.run(run_id).state == Queued(reason="new")
    clock.advance(1)
    advance(system, run_id)
    view = system.server.call(NAMESPACE, GetRun(run_id=run_id))
    assert view.state == Stalled(reason="undelivered")
    assert view.explanation == (
        f"nobody claimed the run within {DAY_MS} ms of being ready, after 2 offers; the last offer failed: connection refused"
    )
    requeued = system.server.call(NAMESPACE, RequeueRun(run_id=run_id, operation_id="again"))
    assert (requeued.state, requeued.due_at) == (Queued(reason="redelivery"), clock.now())


def test_runs_that_wait_are_offered_when_an_endpoint_for_them_is_registered(system: LocalSystem, clock: FakeClock) -> None:
    answering(system, Declined(has_route=False))
    run_id = start(system)
    advance(system, run_id)
    clock.advance(1_000)
    system.wakeups.hints.clear()
    workflows = (WorkflowVersionField(name="w", version="1"),)
    system.server.call(NAMESPACE, PutEndpoint(endpoint_id="e", url="http://127.0.0.1:1/", workflows=workflows))
    assert system.run(run_id).due_at == clock.now()
    assert [(hint.run_id, hint.due_at) for hint in system.wakeups.hints] == [(run_id, clock.now())]


def test_a_sweep_advances_what_is_overdue_and_sends_hints_for_what_is_due_soon(system: LocalSystem, clock: FakeClock) -> None:
    answering(system, Published())
    overdue = start(system)
    clock.advance(6_000)
    fresh = start(system)
    held = start(system)
    claim(system, held)
    system.wakeups.hints.clear()
    plan = SweepPlan(overdue_ms=5_000, lookahead_ms=60_000)
    assert sweep(system.context, system.attention, plan) == Swept(advanced=1, failed=0, hinted=1, is_complete=True)
    assert overdue in [run.run_id for run in system.publisher.offered]
    assert [hint.run_id for hint in system.wakeups.hints if hint.due_at <= clock.now()] == [fresh]


def test_a_sweep_that_runs_out_of_time_leaves_the_rest_to_the_next(system: LocalSystem, clock: FakeClock) -> None:
    for _ in range(3):
        start(system)
    clock.advance(6_000)

    def slow(_: ReadyRun) -> Outcome:
        clock.advance(1_000)
        return Published()

    system.publisher.answer = slow
    assert not sweep(system.context, system.attention, SweepPlan(budget_ms=500)).is_complete


def test_one_run_that_cannot_be_advanced_does_not_hold_up_the_others(system: LocalSystem, clock: FakeClock) -> None:
    poison, healthy = start(system), start(system)
    corrupt = system.table.get(keys.header(NAMESPACE, poison))
    assert corrupt is not None
    system.table.write([Put({**corrupt, "d": "no JSON"}, Always())], token="t")
    clock.advance(6_000)
    answering(system, Published())
    swept = sweep(system.context, system.attention, SweepPlan())
    assert (swept.advanced, swept.failed) == (1, 1)
    assert [run.run_id for run in system.publisher.offered] == [healthy]
