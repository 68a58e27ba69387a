"""Claims by pull: several runs at once, in order, repeatable, and whole even where logs are large or runs damaged."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from itertools import count
from typing import Any

import pytest
from pydantic_core import to_json

from aiki_push.adapters.storage import keys
from aiki_push.adapters.storage.table import Always, Delete, Key, Put, Table
from aiki_push.domain.changes import SaveRun
from aiki_push.domain.errors import InvalidRequest, StorageUnavailable
from aiki_push.domain.run import Offer
from aiki_push.domain.run_states import Stalled
from aiki_push.domain.values import Inline, RunId
from aiki_push.ports.api.checkpoints import Appended, HandBack
from aiki_push.ports.api.claims import Claimed, ClaimedRuns, ClaimRun, ClaimRuns, GetLog, RefreshClaim, ReleaseClaim
from aiki_push.ports.api.runs import GetRun, StartRun
from aiki_push.server.claims import MAX_LOG_ANSWER_BYTES
from aiki_push.server.service import Server
from aiki_push.testing import FakeClock, FaultyTable
from tests.integration.owners import FINISH, Owner, claim, completed, started
from tests.integration.test_races import side_by_side
from tests.local_system import NAMESPACE, LocalSystem

_REQUESTS = count(1)


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def system(table: Table, clock: FakeClock) -> LocalSystem:
    return LocalSystem(table, clock=clock)


def start(system: LocalSystem, *, pool: str | None = None, priority: int = 5, **fields: Any) -> RunId:
    asked = {"workflow": "w", "version": "1", "options": {"pool": pool, "priority": priority}}
    return system.server.call(NAMESPACE, StartRun.model_validate({**asked, **fields})).id


def request(*versions: str, request_id: str | None = None, **fields: Any) -> ClaimRuns:
    workflows = [{"name": "w", "version": version} for version in versions or ("1",)]
    asked = {"request_id": request_id or f"request-{next(_REQUESTS)}", "executor": "puller", "workflows": workflows, "limit": 100}
    return ClaimRuns.model_validate({**asked, **fields})


def pull(system: LocalSystem, *versions: str, **fields: Any) -> tuple[Claimed, ...]:
    return system.server.call(NAMESPACE, request(*versions, **fields)).claims


def ids(claims: Sequence[Claimed]) -> list[RunId]:
    return [one.run.id for one in claims]


def test_a_pulled_claim_is_as_good_as_any_other(system: LocalSystem) -> None:
    run_id, other = sorted((start(system), start(system)))
    [pulled] = pull(system, limit=1, executor="executor of claim-1")
    alone = claim(system, other)
    assert pulled == alone.model_copy(update={"run": alone.run.model_copy(update={"id": run_id}), "token": pulled.token})
    view = system.server.call(NAMESPACE, GetRun(run_id=run_id))
    assert (view.state.status, view.revision, view.claim and view.claim.executor) == ("running", 1, "executor of claim-1")
    owner = Owner(system, pulled)
    assert isinstance(owner.append(started("t")), Appended)
    system.server.call(NAMESPACE, RefreshClaim(run_id=run_id, token=owner.token))
    owner.send(owner.checkpoint(completed("t"), end=FINISH))
    assert system.run(run_id).state.status == "completed"


def test_runs_come_in_order_across_queues_and_no_more_than_asked_for(system: LocalSystem, clock: FakeClock) -> None:
    first, second = start(system, version="2"), start(system)
    clock.advance(1)
    last, urgent = start(system), start(system, version="2", priority=0)
    earliest = sorted((first, second))
    assert ids(pull(system, "1", "2", limit=3)) == [*earliest, urgent]
    assert ids(pull(system, "2", "1", limit=3)) == [last]
    assert pull(system, "1", "2") == ()


def test_only_the_versions_and_pools_asked_for_are_claimed(system: LocalSystem) -> None:
    plain, pooled, other_pool = start(system), start(system, pool="eu"), start(system, pool="us")
    start(system, version="2")
    start(system, workflow="v")
    system.server.call("another", StartRun(workflow="w", version="1"))
    assert ids(pull(system)) == [plain]
    assert ids(pull(system, pools=["eu", "eu"])) == [pooled]
    assert ids(pull(system, pools=["us", "eu"])) == [other_pool]


def test_a_request_for_too_many_queues_names_the_fields(system: LocalSystem) -> None:
    versions = [str(number) for number in range(100)]
    assert pull(system, *versions, pools=[f"pool-{number}" for number in range(5)]) == ()
    with pytest.raises(InvalidRequest) as refused:
        pull(system, *versions, pools=[f"pool-{number}" for number in range(6)])
    message = "make 600 queues together, and one request asks 500 at most: send several"
    errors = [{"field": field, "message": message} for field in ("workflows", "pools")]
    assert refused.value.fields == {"errors": errors}


def test_the_same_request_again_gets_the_same_answer_and_takes_nothing_more(system: LocalSystem, clock: FakeClock) -> None:
    for priority in (3, 1, 2, 3):
        start(system, priority=priority)
    asked = request(limit=3)
    first = system.server.call(NAMESPACE, asked)
    assert len(first.claims) == 3
    assert len({system.run(one.run.id).claim for one in first.claims}) == 3
    assert system.server.call(NAMESPACE, asked) == first
    clock.advance(1_000)
    again = system.server.call(NAMESPACE, asked).claims
    assert [one.model_copy(update={"now": first.claims[0].now}) for one in again] == [*first.claims]
    assert len(pull(system)) == 1


def test_two_requests_never_get_the_same_claim(system: LocalSystem) -> None:
    run_id = start(system)
    first = pull(system)
    assert pull(system) == ()
    Owner(system, first[0]).send(Owner(system, first[0]).checkpoint(end=HandBack()))
    second = pull(system)
    assert ids(first) == ids(second) == [run_id]
    assert system.run(run_id).revision == 3


def test_a_repeated_request_leaves_out_what_its_caller_no_longer_holds(system: LocalSystem) -> None:
    kept, finished, released = (start(system, priority=priority) for priority in (1, 2, 3))
    asked = request()
    claims = {one.run.id: one for one in system.server.call(NAMESPACE, asked).claims}
    owner = Owner(system, claims[finished])
    owner.send(owner.checkpoint(end=FINISH))
    system.server.call(NAMESPACE, ReleaseClaim(run_id=released, token=claims[released].token))
    assert ids(system.server.call(NAMESPACE, asked).claims) == [kept]
    assert ids(pull(system)) == [released]


def test_claims_of_a_request_that_failed_half_way_are_answered_when_it_is_repeated(table: Table, clock: FakeClock) -> None:
    faulty = FaultyTable(table)
    system = LocalSystem(faulty, clock=clock)
    run_ids = [start(system, priority=priority) for priority in range(5)]
    writes = count(1)

    def fail_from_the_third_on(_: object) -> None:
        if next(writes) > 2:
            raise StorageUnavailable("down")

    asked = request()
    faulty.before_write = fail_from_the_third_on
    with pytest.raises(StorageUnavailable):
        system.server.call(NAMESPACE, asked)
    faulty.before_write = lambda _: None
    assert ids(system.server.call(NAMESPACE, asked).claims) == run_ids[:2]
    assert ids(pull(system)) == run_ids[2:]


def test_a_run_that_is_written_for_another_reason_meanwhile_is_still_claimed(table: Table, clock: FakeClock) -> None:
    faulty = FaultyTable(table)
    system = LocalSystem(faulty, clock=clock)
    run_id = start(system)

    def offer(_: object) -> None:
        faulty.before_write = lambda _: None
        system.store.commit(SaveRun(system.run(run_id).model_copy(update={"offer": Offer(attempts=1)})))

    faulty.before_write = offer
    assert ids(pull(system)) == [run_id]


class FixedEntropy:
    """Tokens that count, and always the same fraction."""

    def __init__(self, system: LocalSystem, fraction: float) -> None:
        self.token = system.entropy.token
        self._fraction = fraction

    def fraction(self) -> float:
        return self._fraction


@pytest.mark.parametrize(("fraction", "expected"), [(0.0, [1, 2, 3]), (0.5, [5, 6, 7]), (0.99, [1, 2, 9])])
def test_a_claimer_that_meets_another_goes_on_somewhere_else(
    table: Table, clock: FakeClock, fraction: float, expected: list[int]
) -> None:
    faulty = FaultyTable(table)
    system = LocalSystem(faulty, clock=clock)
    run_ids = [start(system, priority=priority) for priority in range(10)]
    server = Server(replace(system.context, entropy=FixedEntropy(system, fraction)))

    def overtake(_: object) -> None:
        faulty.before_write = lambda _: None
        assert isinstance(system.server.call(NAMESPACE, ClaimRun(run_id=run_ids[0], claim_id="c", executor="rival")), Claimed)

    faulty.before_write = overtake
    assert ids(server.call(NAMESPACE, request(limit=3)).claims) == [run_ids[place] for place in expected]


@pytest.mark.timeout(180)
def test_many_claimers_at_once_get_every_run_exactly_once(table: Table) -> None:
    system = LocalSystem(table)
    run_ids = {start(system, priority=number % 10, version=str(number % 3)) for number in range(80)}

    def work(name: str) -> list[RunId]:
        got: list[RunId] = []
        while claims := pull(system, "0", "1", "2", executor=name, limit=5):
            got += ids(claims)
        return got

    with ThreadPoolExecutor(8) as threads:
        shares = side_by_side(threads, *(partial(work, f"executor-{number}") for number in range(8)))
    taken = [run_id for share in shares for run_id in share]
    assert len(taken) == len(run_ids)
    assert {*taken} == run_ids
    assert {system.run(run_id).revision for run_id in run_ids} == {1}


def with_a_log_of(system: LocalSystem, kilobytes: int) -> RunId:
    """A queued run whose log is so large, in slots of 100 KB."""
    run_id = start(system)
    owner = Owner(system, claim(system, run_id))
    output = Inline(value="x" * 25_000)
    for number in range(kilobytes // 100):
        tasks = [f"task-{number}-{place}" for place in range(4)]
        outcomes = [completed(task).model_copy(update={"output": output}) for task in tasks]
        owner.append(*map(started, tasks), *outcomes)
    owner.send(owner.checkpoint(end=HandBack()))
    return run_id


def test_an_answer_stays_small_and_what_it_leaves_out_can_be_had(system: LocalSystem, clock: FakeClock) -> None:
    run_ids = []
    for kilobytes in (900, 800, 900, 300):
        run_ids.append(with_a_log_of(system, kilobytes))
        clock.advance(1)
    asked = request()
    answer = system.server.call(NAMESPACE, asked)
    assert ids(answer.claims) == run_ids[:3]
    assert [one.log_is_complete for one in answer.claims] == [True, True, False]
    assert len(to_json(answer)) < 1.1 * MAX_LOG_ANSWER_BYTES
    assert system.server.call(NAMESPACE, asked) == answer
    last = answer.claims[-1]
    rest = system.server.call(NAMESPACE, GetLog(run_id=last.run.id, after=last.slots[-1].position))
    assert [slot.position for slot in (*last.slots, *rest.slots)] == [*range(10)]
    assert ids(pull(system)) == run_ids[3:]


def damage(system: LocalSystem, key: Key) -> None:
    item = system.table.get(key)
    assert item is not None
    system.table.write([Put({**item, "d": "no JSON"}, Always())], token="t")


@pytest.mark.parametrize(
    "harm",
    [
        lambda system, run_id: damage(system, keys.header(NAMESPACE, run_id)),
        lambda system, run_id: damage(system, keys.slot(NAMESPACE, run_id, 0)),
        lambda system, run_id: system.table.write([Delete(keys.slot(NAMESPACE, run_id, 0))], token="t"),
    ],
    ids=["header that cannot be read", "slot that cannot be read", "slot that is gone"],
)
def test_a_damaged_run_keeps_nobody_from_the_others(system: LocalSystem, harm: Callable[[LocalSystem, RunId], None]) -> None:
    run_ids = [start(system, priority=1, input="x" * 3_000), *(start(system) for _ in range(2))]
    harm(system, run_ids[0])
    assert sorted(ids(pull(system))) == sorted(run_ids[1:])


def test_a_run_whose_log_has_a_gap_is_stalled_and_not_given_to_anyone(system: LocalSystem) -> None:
    run_id = start(system, input="x" * 3_000)
    system.table.write([Delete(keys.slot(NAMESPACE, run_id, 0))], token="t")
    assert system.server.call(NAMESPACE, request()) == ClaimedRuns(
        claims=(), claim_idle_timeout_ms=system.context.limits.claim_idle_timeout_ms
    )
    assert system.run(run_id).state == Stalled(reason="corrupt_log")


def test_a_run_that_is_gone_is_passed_over(table: Table, clock: FakeClock) -> None:
    faulty = FaultyTable(table)
    system = LocalSystem(faulty, clock=clock)
    gone, there = start(system, priority=0), start(system)
    key = keys.header(NAMESPACE, gone)

    def remove(read: object) -> None:
        if read == key:
            table.write([Delete(key)], token="t")

    faulty.before_read = remove
    assert ids(pull(system)) == [there]
