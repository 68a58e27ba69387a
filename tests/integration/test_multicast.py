"""One event for many runs, each on its own."""

from collections.abc import Sequence
from typing import TypeAlias

import pytest

from aiki_push.adapters.storage import keys
from aiki_push.adapters.storage.memory.table import MemoryTable
from aiki_push.adapters.storage.table import Always, Delete, Put, Table, Write
from aiki_push.domain.errors import InternalError, InvalidRequest, PayloadTooLarge, StorageUnavailable
from aiki_push.domain.values import MAX_INLINE_BYTES, MAX_VALUE_BYTES, Json, PayloadReference, RunId
from aiki_push.ports.api.events import MulticastEvent, RunWithId, RunWithReference, SendEvent, SendOutcome
from aiki_push.ports.api.runs import StartReference, StartRun
from aiki_push.testing import FakeClock, FaultyTable
from tests.integration.waiting_runs import inbox, numbered, parked_on, run_in, wait
from tests.local_system import NAMESPACE, LocalSystem

Target: TypeAlias = RunWithId | RunWithReference


@pytest.fixture
def system(table: Table) -> LocalSystem:
    return LocalSystem(table, clock=FakeClock())


def by_id(*run_ids: RunId) -> tuple[RunWithId, ...]:
    return tuple(RunWithId(run_id=run_id) for run_id in run_ids)


def by_reference(reference: str) -> RunWithReference:
    return RunWithReference(workflow="w", version="1", reference=reference)


def named(system: LocalSystem, reference: str) -> RunId:
    request = StartRun(workflow="w", version="1", reference=StartReference(id=reference))
    return system.server.call(NAMESPACE, request).id


def cast(system: LocalSystem, *targets: Target, data: Json = 5, reference: str | None = None) -> Sequence[SendOutcome]:
    request = MulticastEvent(event="paid", targets=targets, data=data, reference=reference)
    return system.server.call(NAMESPACE, request).outcomes


def delivered(run_id: RunId) -> SendOutcome:
    return SendOutcome(run_id=run_id, delivered=True)


NOBODY = SendOutcome(run_id=None, delivered=False)


def test_every_target_has_its_outcome_in_the_order_of_the_targets(system: LocalSystem) -> None:
    waiting, queued, ended = parked_on(system, wait("event", "paid")), run_in(system, "queued"), run_in(system, "completed")
    order = named(system, "order 1")
    targets: tuple[Target, ...] = (
        by_reference("order 2"),
        *by_id(ended, waiting, numbered(404)),
        by_reference("order 1"),
        *by_id(queued),
    )
    assert cast(system, *targets) == (
        NOBODY,
        SendOutcome(run_id=ended, delivered=False),
        delivered(waiting),
        NOBODY,
        delivered(order),
        delivered(queued),
    )
    assert system.run(waiting).state.status == "queued"
    assert [len(inbox(system, run_id)) for run_id in (waiting, queued, order, ended)] == [1, 1, 1, 0]


def test_a_reference_whose_run_is_gone_names_nobody(system: LocalSystem) -> None:
    gone = named(system, "order 1")
    system.table.write([Delete(keys.header(NAMESPACE, gone))], token="gone")
    assert cast(system, by_reference("order 1")) == (NOBODY,)


def test_a_run_of_another_namespace_is_nobody(system: LocalSystem) -> None:
    run_id = named(system, "order 1")
    request = MulticastEvent(event="paid", targets=(*by_id(run_id), by_reference("order 1")))
    assert system.server.call("another", request).outcomes == (NOBODY, NOBODY)
    assert inbox(system, run_id) == ()


def test_a_target_that_is_named_twice_is_sent_to_twice_but_with_a_reference_once(system: LocalSystem) -> None:
    run_id = named(system, "order 1")
    targets: tuple[Target, ...] = (*by_id(run_id, run_id), by_reference("order 1"))
    assert cast(system, *targets) == (delivered(run_id),) * 3
    assert len(inbox(system, run_id)) == 3
    assert cast(system, *targets, reference="payment 1") == (delivered(run_id),) * 3
    assert len(inbox(system, run_id)) == 4


def test_a_reference_is_the_same_event_however_it_is_sent(system: LocalSystem) -> None:
    run_id = run_in(system, "queued")
    system.server.call(NAMESPACE, SendEvent(run_id=run_id, event="paid", data=5, reference="payment 1"))
    assert cast(system, *by_id(run_id), reference="payment 1") == (delivered(run_id),)
    assert len(inbox(system, run_id)) == 1


def test_large_data_is_kept_with_each_run(system: LocalSystem) -> None:
    run_ids = [run_in(system, "queued") for _ in range(2)]
    cast(system, *by_id(*run_ids), data="x" * MAX_INLINE_BYTES)
    stored = [one.data for run_id in run_ids for one in inbox(system, run_id)]
    assert [isinstance(data, PayloadReference) and data.run_id for data in stored] == run_ids


@pytest.mark.parametrize(("data", "error"), [(float("nan"), InvalidRequest), ("x" * MAX_VALUE_BYTES, PayloadTooLarge)])
def test_data_that_cannot_be_sent_is_sent_to_nobody(system: LocalSystem, data: Json, error: type[Exception]) -> None:
    run_ids = [run_in(system, "completed"), run_in(system, "queued"), run_in(system, "queued")]
    with pytest.raises(error):
        cast(system, *by_id(*run_ids), data=data)
    assert [inbox(system, run_id) for run_id in run_ids] == [(), (), ()]


def test_a_target_that_cannot_be_read_keeps_the_event_from_no_other_and_is_reported(system: LocalSystem) -> None:
    damaged, healthy = run_in(system, "queued"), run_in(system, "queued")
    key = keys.header(NAMESPACE, damaged)
    system.table.write([Put({"PK": key.pk, "SK": key.sk, "v": 1, "etag": "e", "d": "{}"}, Always())], token="damage")
    with pytest.raises(InternalError):
        cast(system, *by_id(damaged, healthy))
    assert len(inbox(system, healthy)) == 1


def test_a_multicast_that_a_table_cut_short_is_completed_by_its_repetition() -> None:
    faulty = FaultyTable(MemoryTable())
    system = LocalSystem(faulty, clock=FakeClock())
    run_ids = [run_in(system, "queued") for _ in range(4)]
    writes = 0

    def fail_from_the_third_on(_: Sequence[Write]) -> None:
        nonlocal writes
        writes += 1
        if writes > 2:
            raise StorageUnavailable("throttled")

    faulty.before_write = fail_from_the_third_on
    with pytest.raises(StorageUnavailable):
        cast(system, *by_id(*run_ids), reference="payment 1")
    assert [len(inbox(system, run_id)) for run_id in run_ids] == [1, 1, 0, 0]
    faulty.before_write = lambda _: None
    assert cast(system, *by_id(*run_ids), reference="payment 1") == tuple(map(delivered, run_ids))
    assert [len(inbox(system, run_id)) for run_id in run_ids] == [1, 1, 1, 1]
