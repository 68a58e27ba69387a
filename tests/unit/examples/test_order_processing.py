"""The example's orders, settings and endpoints."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from pydantic import ValidationError

from aiki_push.apps.endpoint.messages import PushRequest
from aiki_push.domain.canonical_json import compact_json
from aiki_push.domain.values import MAX_INLINE_BYTES, MAX_VALUE_BYTES
from aiki_push.errors import SettingsError
from examples.order_processing.endpoint import order_endpoint
from examples.order_processing.orders import (
    MAX_AMOUNT,
    ORDERS_FILE,
    Customer,
    Fulfilled,
    InReview,
    Line,
    Order,
    Outcome,
    Rejected,
    read_orders,
)
from examples.order_processing.place_orders import summary
from examples.order_processing.settings import effects_folder, work_s
from examples.order_processing.workflow import order_v1

ROOT = Path(__file__).parents[3]

SETTINGS = {"ORDERS_SERVER_URL": "http://127.0.0.1:9", "ORDERS_PUBLIC_KEYS": f"whpk_{'A' * 43}= whpk_{'B' * 42}A="}

ORDER = Order(order_id="order-1", customer=Customer(name="Anna"), currency="JPY", lines=[Line(sku="CUP", unit_price=900)])


@pytest.fixture
def environment(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """Without any setting of the example's."""
    for name in [name for name in os.environ if name.startswith("ORDERS_")]:
        monkeypatch.delenv(name)
    return monkeypatch


def test_the_file_has_no_field_that_the_model_ignores_or_changes() -> None:
    assert [order.model_dump(exclude_unset=True) for order in read_orders()] == json.loads(ORDERS_FILE.read_text("utf-8"))


def test_every_order_in_the_file_has_an_id_of_its_own() -> None:
    ids = [order.order_id for order in read_orders()]
    assert len(ids) >= 24
    assert len({one.lower() for one in ids}) == len(ids)


def test_the_file_is_as_awkward_as_it_is_meant_to_be() -> None:
    orders = {order.order_id: order for order in read_orders()}
    sizes = {name: len(compact_json(order.model_dump()).encode()) for name, order in orders.items()}
    assert [name for name, size in sizes.items() if size > MAX_INLINE_BYTES] == ["order-005"]
    assert max(sizes.values()) < MAX_VALUE_BYTES
    assert len(orders["order-005"].lines) == 200
    assert {line.unit_price for order in orders.values() for line in order.lines} >= {0, 1, MAX_AMOUNT}
    assert len(orders["order-024"].customer.name) == 1_000
    assert orders["order-017"].customer.name != orders["order-018"].customer.name
    characters = set(ORDERS_FILE.read_text("utf-8")) | {c for order in orders.values() for c in order.model_dump_json()}
    assert characters >= set("\u0308\u200d\u202e\u2028\ufeffعשי𠮷🎈<&\"'")


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("order_id", "../order"),
        ("order_id", "order\n"),
        ("order_id", ""),
        ("order_id", "x" * 65),
        ("customer", {"name": ""}),
        ("currency", "XXX"),
        ("card", "4242"),
        ("lines", [{"sku": "CUP", "unit_price": -1}]),
        ("lines", [{"sku": "CUP", "unit_price": MAX_AMOUNT + 1}]),
        ("lines", [{"sku": "CUP", "unit_price": 1, "quantity": 0}]),
        ("lines", [{"sku": "CUP", "unit_price": 0.5}]),
        ("ship_to", {"street": "s", "city": "c", "country": "Germany"}),
    ],
)
def test_a_malformed_order_is_refused_by_field(field: str, value: object) -> None:
    with pytest.raises(ValidationError) as refused:
        Order.model_validate({**ORDER.model_dump(), field: value})
    assert {fault["loc"][0] for fault in refused.value.errors()} == {field}


@pytest.mark.parametrize(
    ("outcome", "line"),
    [
        (
            Fulfilled(order_id="order-1", total=900, transaction="t", invoice="i", tracking="parcel-7"),
            "order-1                  fulfilled  900 JPY, parcel-7",
        ),
        (
            Fulfilled(order_id="order-1", total=900, transaction="t", invoice="i", tracking=None),
            "order-1                  fulfilled  900 JPY, to be collected",
        ),
        (
            Rejected(order_id="order-1", reasons=["no lines", "no money"]),
            "order-1                  rejected   no lines; no money",
        ),
        (InReview(order_id="order-1", total=900, ticket="r-1"), "order-1                  in review  900 JPY, r-1"),
    ],
)
def test_a_summary_is_one_line(outcome: Outcome, line: str) -> None:
    assert summary(ORDER, outcome) == line


def test_the_workflow_is_order_processing_1_0_0() -> None:
    assert (order_v1.name, order_v1.version) == ("order-processing", "1.0.0")


def test_settings_have_defaults_and_can_be_set(environment: pytest.MonkeyPatch) -> None:
    assert (effects_folder(), work_s()) == (Path(".aiki/orders"), 0.02)
    environment.setenv("ORDERS_FOLDER", "/somewhere")
    environment.setenv("ORDERS_WORK_MS", "1500")
    assert (effects_folder(), work_s()) == (Path("/somewhere"), 1.5)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"ORDERS_SERVER_URL": " "}, "ORDERS_SERVER_URL is missing"),
        ({"ORDERS_PUBLIC_KEYS": ""}, "ORDERS_PUBLIC_KEYS is missing"),
        ({"ORDERS_PUBLIC_KEYS": "whpk_A"}, "A public signing key is whpk_"),
        ({"ORDERS_WORK_MS": "fast"}, "ORDERS_WORK_MS is 'fast'; it should be a whole number from 0 to 600000"),
        ({"ORDERS_WORK_MS": "\u0663"}, "ORDERS_WORK_MS is '\u0663'; it should be a whole number"),
        ({"ORDERS_WORK_MS": "-1"}, "ORDERS_WORK_MS is '-1'; it should be a whole number from 0 to 600000"),
        ({"ORDERS_CLAIM_REFRESH_INTERVAL_MS": "600001"}, "ORDERS_CLAIM_REFRESH_INTERVAL_MS is '600001'"),
        (
            {"ORDERS_CLAIM_REFRESH_INTERVAL_MS": "0"},
            "ORDERS_CLAIM_REFRESH_INTERVAL_MS is '0'; it should be a whole number from 1",
        ),
    ],
)
def test_a_wrong_setting_is_named_before_anything_starts(
    environment: pytest.MonkeyPatch, wrong: dict[str, str], message: str
) -> None:
    for name, value in (SETTINGS | wrong).items():
        environment.setenv(name, value)
    with pytest.raises(SettingsError, match=message):
        order_endpoint()


async def test_the_endpoint_refuses_what_nobody_signed(environment: pytest.MonkeyPatch) -> None:
    for name, value in SETTINGS.items():
        environment.setenv(name, value)
    assert (await order_endpoint().handle(PushRequest("POST", {}, b"{}"))).status == 401


def run(*arguments: str, settings: dict[str, str]) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("ORDERS_")} | settings
    return subprocess.run(
        [sys.executable, *arguments], cwd=ROOT, env=environment, capture_output=True, text=True, timeout=50, check=False
    )


@pytest.mark.parametrize(
    ("module", "line"),
    [
        ("endpoint", "order endpoint: ORDERS_SERVER_URL is missing\n"),
        ("place_orders", "place orders: ORDERS_SERVER_URL is missing\n"),
    ],
)
def test_a_missing_setting_ends_the_process_with_one_line(module: str, line: str) -> None:
    done = run("-m", f"examples.order_processing.{module}", settings={})
    assert (done.returncode, done.stdout, done.stderr) == (1, "", line)


def test_the_lambda_handler_answers_http_events() -> None:
    program = """
from examples.order_processing.aws_lambda import handler

for method in ("GET", "POST"):
    event = {"version": "2.0", "requestContext": {"http": {"method": method}}, "headers": {}, "body": "{}"}
    print(handler(event, None)["statusCode"])
"""
    done = run("-c", program, settings=SETTINGS)
    assert (done.returncode, done.stdout) == (0, "405\n401\n"), done.stderr
