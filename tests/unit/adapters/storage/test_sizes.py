import pytest

from aiki_push.adapters.storage.sizes import check_limits, item_size, write_units
from aiki_push.adapters.storage.table import Always, Delete, EtagIs, Key, Put
from aiki_push.domain.errors import InternalError, PayloadTooLarge


@pytest.mark.parametrize(
    ("value", "size"),
    [("", 0), ("abc", 3), ("é", 2), ("𝄞", 4), (b"", 0), (b"\x00\xff", 2), (0, 1), (7, 2), (12, 2), (123, 3), (1200, 2), (-12, 2)],
)
def test_an_attribute_counts_its_name_and_its_value(value: str | bytes | int, size: int) -> None:
    """Numbers: one byte for two significant digits and one more; zeros at the end do not count."""
    assert item_size({"né": value}) == 3 + size


def test_an_item_counts_all_of_its_attributes() -> None:
    assert item_size({"PK": "ab", "SK": "c", "v": 1}) == 2 + 2 + 2 + 1 + 1 + 2


@pytest.mark.parametrize(("size", "units"), [(0, 1), (1, 1), (1024, 1), (1025, 2), (2048, 2), (409_600, 400)])
def test_a_write_unit_is_a_started_kilobyte(size: int, units: int) -> None:
    assert write_units(size) == units


def test_an_item_of_exactly_400_kb_is_allowed_and_one_byte_more_is_not() -> None:
    def put(content: int) -> Put:
        return Put({"PK": "A", "SK": "1", "d": b"x" * content}, Always())

    check_limits([put(409_600 - 7)])
    with pytest.raises(PayloadTooLarge):
        check_limits([put(409_600 - 6)])


def test_a_delete_is_one_of_the_100_writes_and_names_an_item_like_any_other() -> None:
    deletes = [Delete(Key("A", str(number)), EtagIs("a")) for number in range(98)]
    put = Put({"PK": "A", "SK": "99"}, Always())
    check_limits([*deletes, put, Delete(Key("A", "98"))])
    with pytest.raises(PayloadTooLarge):
        check_limits([*deletes, put, Delete(Key("A", "98")), Delete(Key("A", "100"))])
    with pytest.raises(InternalError):
        check_limits([*deletes, put, Delete(Key("A", "99"))])
