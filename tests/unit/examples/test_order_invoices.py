"""The example's invoices."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from examples.order_processing.invoices import invoice_text, write_invoice_file
from examples.order_processing.orders import Currency, Customer, Line, Order, money, read_orders

ORDERS = {order.order_id: order for order in read_orders()}

COFFEE = Order(
    order_id="order-100",
    customer=Customer(name='Zo\u00eb <Núñez> & "Söhne" 👩‍👧', vat_id="ATU00000000"),
    lines=[
        Line(sku="CUP", description="Cup,\nred", quantity=1200, unit_price=350),
        Line(sku="SPOON", unit_price=1),
        Line(sku="SUGAR", description="  ", quantity=2, unit_price=0),
    ],
)


def test_an_invoice_has_every_line_and_the_total() -> None:
    assert invoice_text(COFFEE) == (
        "INVOICE order-100\n"
        'Customer: Zoë <Núñez> & "Söhne" 👩‍👧\n'
        "VAT id: ATU00000000\n"
        "\n"
        "   1  CUP  Cup, red  1,200 x 3.50 EUR = 4,200.00 EUR\n"
        "   2  SPOON  -  1 x 0.01 EUR = 0.01 EUR\n"
        "   3  SUGAR  -  2 x 0.00 EUR = 0.00 EUR\n"
        "\n"
        "TOTAL 4,200.01 EUR\n"
    )


def test_text_that_imitates_a_total_stays_on_its_line() -> None:
    text = invoice_text(ORDERS["order-030"])
    assert [line for line in text.split("\n") if line.startswith("TOTAL")] == ["TOTAL 179.80 EUR"]


def test_no_control_characters_get_into_an_invoice() -> None:
    lines = invoice_text(ORDERS["order-029"]).split("\n")
    assert lines[1] == "Customer: \ufeffInvisible\u200b Ink\u00ad end"
    assert len(lines) == 7


def test_two_hundred_lines_are_two_hundred_lines() -> None:
    lines = invoice_text(ORDERS["order-005"]).split("\n")
    assert [line.split()[0] for line in lines[4:-3]] == [str(number) for number in range(1, 201)]
    assert lines[-2] == "TOTAL 401.00 EUR"


@pytest.mark.parametrize(
    ("amount", "currency", "text"),
    [
        (0, "EUR", "0.00 EUR"),
        (5, "USD", "0.05 USD"),
        (123456, "EUR", "1,234.56 EUR"),
        (9150, "JPY", "9,150 JPY"),
        (37035, "KWD", "37.035 KWD"),
        (2**53 - 1, "EUR", "90,071,992,547,409.91 EUR"),
        ((2**53 - 1) * 1_000_000, "JPY", "9,007,199,254,740,991,000,000 JPY"),
    ],
)
def test_money_has_the_decimals_of_its_currency(amount: int, currency: Currency, text: str) -> None:
    assert money(amount, currency) == text


def test_a_file_holds_the_invoice_and_nothing_else_is_left(tmp_path: Path) -> None:
    folder = tmp_path / "new" / "invoices"
    names = [write_invoice_file(folder, order) for order in (COFFEE, ORDERS["X"], COFFEE)]
    assert names == ["order-100.txt", "X.txt", "order-100.txt"]
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == {
        "order-100.txt": invoice_text(COFFEE).encode(),
        "X.txt": invoice_text(ORDERS["X"]).encode(),
    }


def test_writers_of_one_invoice_do_not_disturb_each_other_or_a_reader(tmp_path: Path) -> None:
    large = ORDERS["order-005"]
    whole = invoice_text(large).encode()
    write_invoice_file(tmp_path, large)
    with ThreadPoolExecutor(4) as threads:
        writes = [threads.submit(write_invoice_file, tmp_path, large) for _ in range(20)]
        reads = [threads.submit((tmp_path / "order-005.txt").read_bytes) for _ in range(20)]
    assert {write.result() for write in writes} == {"order-005.txt"}
    assert {read.result() for read in reads} == {whole}
    assert [path.name for path in tmp_path.iterdir()] == ["order-005.txt"]


def test_a_reader_of_the_old_invoice_is_not_disturbed_by_the_new_one(tmp_path: Path) -> None:
    write_invoice_file(tmp_path, COFFEE)
    with (tmp_path / "order-100.txt").open(encoding="utf-8") as old:
        write_invoice_file(tmp_path, COFFEE.model_copy(update={"lines": []}))
        assert old.read() == invoice_text(COFFEE)


def test_a_write_that_fails_leaves_the_old_invoice_alone(tmp_path: Path) -> None:
    write_invoice_file(tmp_path, COFFEE)
    unwritable = COFFEE.model_copy(update={"customer": Customer.model_construct(name="half of a pair: \ud83d", vat_id=None)})
    with pytest.raises(UnicodeEncodeError):
        write_invoice_file(tmp_path, unwritable)
    assert {path.name: path.read_text("utf-8") for path in tmp_path.iterdir()} == {"order-100.txt": invoice_text(COFFEE)}
