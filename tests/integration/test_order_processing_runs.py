"""The example's workflow, executed order by order."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from aiki_push import Client, Completed
from aiki_push.adapters.storage.table import Table
from aiki_push.domain.errors import ServerUnreachable
from aiki_push.domain.limits import Limits
from aiki_push.domain.log_records import AnyRecord, TaskCompleted, TaskStarted
from aiki_push.domain.values import Inline, Json
from aiki_push.ports.api.checkpoints import AppendCheckpoint
from aiki_push.ports.api.operation import Operation
from aiki_push.sdk.executor import ExecutorConfig, SegmentResult
from aiki_push.testing import FakeClock
from examples.order_processing.audit import Audit, audit
from examples.order_processing.invoices import invoice_text
from examples.order_processing.ledger import Execution, Ledger
from examples.order_processing.orders import Fulfilled, InReview, Outcome, Rejected, read_orders
from examples.order_processing.place_orders import place_orders
from examples.order_processing.workflow import order_v1
from tests.local_system import NAMESPACE, LocalSystem

IN_PLACE = ExecutorConfig(max_inline_wait_ms=1_000)

NO_LINES = "the order has no lines"
DECLINED = "the card was declined"
TOO_MUCH = "the total of 90,071,992,547,409.92 EUR is more than can be charged"

SHIPPED = {
    "order-001": 4_980,
    "order-002": 8_950,
    "order-005": 40_100,
    "order-006": 0,
    "order-010": 1_000_000,
    "order-012": 1_000_000,
    "order-014": 4_200,
    "order-015": 45_900,
    "order-016": 12_000,
    "order-019": 666,
    "order-020": 9_150,
    "order-021": 37_035,
    "order-022": 4_200,
    "order-023": 1_500,
    "order-024": 99,
    "order-029": 640,
}
COLLECTED = {
    "order-007": 1,
    "order-017": 1_560,
    "order-018": 1_560,
    "order-025": 2_500,
    "order-026": 2_500,
    "order-031": 1_010,
    "X": 5,
    "Longest-id-01234567890123456789012345678901234567890123456789-29": 5_439,
}
REJECTED = {
    "order-003": NO_LINES,
    "order-004": NO_LINES,
    "order-009": TOO_MUCH,
    "order-013": DECLINED,
    "order-030": DECLINED,
}
DECLINED_AMOUNTS = {"order-013": 1_999, "order-030": 17_980}
BY_LETTER = {f"order-0{number}" for number in (10, 15, 16, 19, 21, 23, 25, 26, 29, 31)} | {"X"}
REVIEWED = {"order-008": 9_007_199_254_740_991, "order-011": 1_000_001}

FULFILLING: list[str | set[str]] = [
    "validate-order",
    "reserve-stock",
    "charge-payment",
    {"write-invoice", "book-shipment"},
    "send-confirmation",
]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the tasks of this test have their effects, at once."""
    monkeypatch.setenv("ORDERS_FOLDER", str(tmp_path / "effects"))
    monkeypatch.setenv("ORDERS_WORK_MS", "0")
    return tmp_path / "effects"


@dataclass(frozen=True, slots=True)
class Processed:
    """What is left when all orders have been executed: ends and histories by order, and the ledger."""

    ends: Mapping[str, object]
    histories: Mapping[str, Sequence[AnyRecord]]
    run_ids: Mapping[str, str]
    executions: Sequence[Execution]

    def finished(self, order_id: str) -> list[Execution]:
        return [one for one in self.executions if one.order_id == order_id and one.end == "finished"]

    def starts(self, task: str) -> dict[str, list[TaskStarted]]:
        """By order, where there are any."""
        found = {
            order_id: [one for one in records if isinstance(one, TaskStarted) and one.name == task]
            for order_id, records in self.histories.items()
        }
        return {order_id: starts for order_id, starts in found.items() if starts}


async def process_all(folder: Path, table: Table | None = None) -> Processed:
    """Place all orders and execute them, one after the other."""
    system = LocalSystem(table)
    executor, orders = system.executor(order_v1, config=IN_PLACE), read_orders()
    handles = await place_orders(Client(server=system.server, namespace=NAMESPACE), orders)
    assert [await executor.execute(handle.id, revision=None) for handle in handles] == [SegmentResult("completed")] * len(orders)
    by_order = {order.order_id: handle for order, handle in zip(orders, handles, strict=True)}
    return Processed(
        ends={order_id: (await handle.wait()).state for order_id, handle in by_order.items()},
        histories={order_id: system.records(handle.id) for order_id, handle in by_order.items()},
        run_ids={order_id: handle.id for order_id, handle in by_order.items()},
        executions=executions_in(folder),
    )


def executions_in(folder: Path) -> tuple[Execution, ...]:
    return Ledger(folder / "ledger.sqlite").executions()


def expected_ends(transactions: Mapping[str, str]) -> dict[str, Completed[Outcome]]:
    """What becomes of each order, where `transactions` are the payments by order."""

    def fulfilled(order_id: str, total: int, tracking: str | None) -> Fulfilled:
        invoice = f"{order_id}.txt"
        return Fulfilled(order_id=order_id, total=total, transaction=transactions[order_id], invoice=invoice, tracking=tracking)

    outcomes: dict[str, Outcome] = {}
    outcomes |= {name: fulfilled(name, total, f"parcel-{name}") for name, total in SHIPPED.items()}
    outcomes |= {name: fulfilled(name, total, None) for name, total in COLLECTED.items()}
    outcomes |= {name: Rejected(order_id=name, reasons=[reason]) for name, reason in REJECTED.items()}
    outcomes |= {name: InReview(order_id=name, total=total, ticket=f"review-{name}") for name, total in REVIEWED.items()}
    return {name: Completed(outcome) for name, outcome in outcomes.items()}


def expected_steps(order_id: str) -> list[str | set[str]]:
    """The tasks of an order, those that run side by side as a set."""
    if order_id in REVIEWED:
        return ["validate-order", "open-review"]
    if order_id in DECLINED_AMOUNTS:
        return ["validate-order", "reserve-stock", "charge-payment", "release-stock"]
    return ["validate-order"] if order_id in REJECTED else FULFILLING


def steps_in(executions: Sequence[Execution]) -> list[str | set[str]]:
    """Tasks in the order of their executions; those of the parallel pair as a set, where they are neighbours."""
    pair = {"write-invoice", "book-shipment"}
    steps: list[str | set[str]] = []
    for one in executions:
        if one.task in pair and steps and isinstance(steps[-1], set):
            steps[-1].add(one.task)
        else:
            steps.append({one.task} if one.task in pair else one.task)
    return steps


async def test_every_order_ends_as_it_should_with_every_effect_once(table: Table, folder: Path) -> None:
    processed = await process_all(folder, table)

    keys = {order_id: starts[0].task_id for order_id, starts in processed.starts("charge-payment").items()}
    payments = {order_id: f"payment-{processed.run_ids[order_id]}-{task_id}" for order_id, task_id in keys.items()}
    assert processed.ends == expected_ends(payments)
    histories = {processed.run_ids[order_id]: records for order_id, records in processed.histories.items()}
    effects = 24 * 6 + 3 * 1 + 2 * 4 + 2 * 2
    assert audit(histories, processed.executions) == Audit(effects=effects, interrupted=(), faults=())


async def test_every_order_takes_its_steps_and_only_a_busy_card_takes_one_twice(folder: Path) -> None:
    processed = await process_all(folder)

    steps = {order_id: steps_in(processed.finished(order_id)) for order_id in processed.ends}
    assert steps == {order_id: expected_steps(order_id) for order_id in processed.ends}
    assert [(one.order_id, one.task, one.attempt, one.end) for one in processed.executions if one.end != "finished"] == [
        ("order-002", "charge-payment", 1, "failed"),
        ("order-020", "charge-payment", 1, "failed"),
    ]


async def test_customers_are_charged_what_they_ordered_and_told_as_they_can_be(folder: Path) -> None:
    processed = await process_all(folder)

    charged = {order_id: _input(starts[-1])["amount"] for order_id, starts in processed.starts("charge-payment").items()}
    assert charged == SHIPPED | COLLECTED | DECLINED_AMOUNTS
    parcels = {order_id: _input(starts[0])["tracking"] for order_id, starts in processed.starts("send-confirmation").items()}
    assert parcels == {name: f"parcel-{name}" for name in SHIPPED} | dict.fromkeys(COLLECTED)
    told = {
        order_id: next(
            one.output for one in processed.histories[order_id] if isinstance(one, TaskCompleted) and one.task_id == task_id
        )
        for order_id, starts in processed.starts("send-confirmation").items()
        for task_id in [starts[0].task_id]
    }
    expected = {order_id: "letter" if order_id in BY_LETTER else "email" for order_id in SHIPPED | COLLECTED}
    assert told == {order_id: Inline(value=how) for order_id, how in expected.items()}


def _input(start: TaskStarted) -> dict[str, Json]:
    assert isinstance(start.input, Inline)
    assert isinstance(start.input.value, dict)
    return start.input.value


async def test_every_fulfilled_order_has_its_invoice_and_no_other_has_one(folder: Path) -> None:
    await process_all(folder)

    invoices = {path.name: path.read_text("utf-8") for path in (folder / "invoices").iterdir()}
    invoiced = [order for order in read_orders() if order.order_id in SHIPPED | COLLECTED]
    assert invoices == {f"{order.order_id}.txt": invoice_text(order) for order in invoiced}


async def test_an_order_survives_its_executor_and_the_repeated_task_is_named(table: Table, folder: Path) -> None:
    clock = FakeClock()
    system = LocalSystem(table, clock=clock, limits=Limits(claim_idle_timeout_ms=90_000))
    order = read_orders()[0]
    (handle,) = await place_orders(Client(server=system.server, namespace=NAMESPACE), [order])

    # A reserves the stock and is cut off before that is recorded, for as long as its claim lives.
    line = system.faulty_api()

    async def cut(operation: Operation[Any]) -> None:
        if isinstance(operation, AppendCheckpoint) and "reserve-stock" in {one.task for one in executions_in(folder)}:
            clock.advance(90_000)
            raise ServerUnreachable("the line is dead")

    line.before = cut
    segment = await system.executor(order_v1, api=line, name="A", config=IN_PLACE).execute(handle.id, revision=None)
    assert segment == SegmentResult("unsettled")
    assert [(one.task, one.end) for one in executions_in(folder)] == [
        ("validate-order", "finished"),
        ("reserve-stock", "finished"),
    ]

    # Recovery hands the run to B, which goes on from the last checkpoint.
    system.attention.advance(NAMESPACE, handle.id)
    assert await system.executor(order_v1, name="B", config=IN_PLACE).execute(handle.id, revision=None) == SegmentResult(
        "completed"
    )

    executions = executions_in(folder)
    lost, repeated = (one for one in executions if one.task == "reserve-stock")
    assert steps_in([one for one in executions if one != lost]) == FULFILLING
    assert audit({handle.id: system.records(handle.id)}, executions) == Audit(effects=6, interrupted=(lost,), faults=())
    assert (lost.idempotency_key, lost.attempt) == (repeated.idempotency_key, repeated.attempt)
    assert sum(isinstance(record, TaskCompleted) for record in system.records(handle.id)) == 6
