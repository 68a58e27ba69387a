"""The example's workflow, executed order by order."""

from pathlib import Path
from typing import Any

import pytest

from aiki_push import Client, Completed
from aiki_push.adapters.storage.table import Table
from aiki_push.domain.errors import ServerUnreachable
from aiki_push.domain.limits import Limits
from aiki_push.domain.log_records import TaskCompleted
from aiki_push.ports.api.claims import AppendCheckpoint
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


def executions_in(folder: Path) -> tuple[Execution, ...]:
    return Ledger(folder / "ledger.sqlite").executions()


def expected_outcomes(transactions: dict[str, str]) -> dict[str, Outcome]:
    """What becomes of each order, where `transactions` are the payments by order."""

    def fulfilled(order_id: str, total: int, tracking: str | None) -> Fulfilled:
        invoice = f"{order_id}.txt"
        return Fulfilled(order_id=order_id, total=total, transaction=transactions[order_id], invoice=invoice, tracking=tracking)

    outcomes: dict[str, Outcome] = {}
    outcomes |= {name: fulfilled(name, total, f"parcel-{name}") for name, total in SHIPPED.items()}
    outcomes |= {name: fulfilled(name, total, None) for name, total in COLLECTED.items()}
    outcomes |= {name: Rejected(order_id=name, reasons=[reason]) for name, reason in REJECTED.items()}
    outcomes |= {name: InReview(order_id=name, total=total, ticket=f"review-{name}") for name, total in REVIEWED.items()}
    return outcomes


def expected_steps(order_id: str) -> list[str | set[str]]:
    """The tasks of an order, those that run side by side as a set."""
    if order_id in REVIEWED:
        return ["validate-order", "open-review"]
    if REJECTED.get(order_id) == DECLINED:
        return ["validate-order", "reserve-stock", "charge-payment", "release-stock"]
    return ["validate-order"] if order_id in REJECTED else FULFILLING


def steps_in(executions: list[Execution]) -> list[str | set[str]]:
    """Tasks in the order of their executions; those of the parallel pair as a set, wherever they are neighbours."""
    pair = {"write-invoice", "book-shipment"}
    steps: list[str | set[str]] = []
    for one in executions:
        if one.task in pair and steps and isinstance(steps[-1], set):
            steps[-1].add(one.task)
        else:
            steps.append({one.task} if one.task in pair else one.task)
    return steps


async def test_every_order_ends_as_it_should_with_every_effect_once(table: Table, folder: Path) -> None:
    system = LocalSystem(table)
    executor, orders = system.executor(order_v1, config=IN_PLACE), read_orders()
    handles = await place_orders(Client(server=system.server, namespace=NAMESPACE), orders)
    assert [await executor.execute(handle.id, revision=None) for handle in handles] == [SegmentResult("completed")] * len(orders)

    executions = executions_in(folder)
    payments = {one.order_id: f"payment-{one.idempotency_key}" for one in executions if one.task == "charge-payment"}
    ends = {order.order_id: (await handle.wait()).state for order, handle in zip(orders, handles, strict=True)}
    assert ends == {name: Completed(outcome) for name, outcome in expected_outcomes(payments).items()}

    finished = {name: [one for one in executions if one.order_id == name and one.end == "finished"] for name in ends}
    assert {name: steps_in(of_order) for name, of_order in finished.items()} == {name: expected_steps(name) for name in ends}
    assert [(one.order_id, one.task, one.attempt, one.end) for one in executions if one.end != "finished"] == [
        ("order-002", "charge-payment", 1, "failed"),
        ("order-020", "charge-payment", 1, "failed"),
    ]
    histories = {str(handle.id): system.records(handle.id) for handle in handles}
    effects = sum(len(of_order) for of_order in finished.values())
    assert audit(histories, executions) == Audit(effects=effects, interrupted=(), faults=())

    invoices = {path.name: path.read_text("utf-8") for path in (folder / "invoices").iterdir()}
    invoiced = [order for order in orders if order.order_id in SHIPPED | COLLECTED]
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
