import hashlib
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter

from aiki_push.domain.ids import derived_id, join_key, token_text, ulid, ulid_timestamp_ms
from aiki_push.domain.values import IDENTIFIER_PATTERN, RUN_ID_PATTERN, Identifier

LAST_MS = 2**48 - 1

times = st.integers(0, LAST_MS)
randomness = st.binary(min_size=10, max_size=10)
parts = st.text(st.sampled_from("a|%7C25:#é\ud800"), max_size=6)


@pytest.mark.parametrize(
    ("at_ms", "random_bytes", "text"),
    [
        (0, bytes(10), "0" * 26),
        (LAST_MS, b"\xff" * 10, "7" + "Z" * 25),
        (1_469_918_176_385, bytes(9) + b"\x1f", "01ARYZ6S41" + "0" * 15 + "Z"),
        (1, b"\x80" + bytes(9), "0000000001" + "G" + "0" * 15),
    ],
)
def test_ulids_are_those_of_the_specification(at_ms: int, random_bytes: bytes, text: str) -> None:
    assert ulid(at_ms, random_bytes) == text


@given(times, randomness)
def test_a_ulid_is_a_run_id_and_tells_its_time(at_ms: int, random_bytes: bytes) -> None:
    text = ulid(at_ms, random_bytes)
    assert re.fullmatch(RUN_ID_PATTERN, text)
    assert ulid_timestamp_ms(text) == at_ms


@given(times, randomness, times, randomness)
def test_ulids_sort_by_time_and_then_by_randomness(at_ms: int, random_bytes: bytes, other_at_ms: int, other_bytes: bytes) -> None:
    first, other = (at_ms, random_bytes), (other_at_ms, other_bytes)
    assert (ulid(*first) < ulid(*other)) == (first < other)


@pytest.mark.parametrize("size", [0, 9, 11])
def test_a_ulid_takes_ten_bytes_of_randomness(size: int) -> None:
    with pytest.raises(ValueError, match="10 bytes"):
        ulid(0, bytes(size))


@pytest.mark.parametrize("at_ms", [-1, LAST_MS + 1])
def test_a_ulid_holds_no_time_out_of_its_range(at_ms: int) -> None:
    with pytest.raises(OverflowError):
        ulid(at_ms, bytes(10))


def test_derived_ids_never_change_between_releases() -> None:
    digest = hashlib.sha256(bytes(7) + b"\x05child" + bytes(7) + b"\x01" + b"1").digest()
    assert derived_id("child", "1") == ulid(int.from_bytes(digest[:6], "big"), digest[6:16]) == "0WX941PNA7VQTFJ835SSY0D9X6"


@given(st.lists(parts, max_size=3))
def test_a_derived_id_is_an_identifier_and_has_the_shape_of_a_run_id(items: list[str]) -> None:
    assert re.fullmatch(IDENTIFIER_PATTERN, derived_id(*items))
    assert re.fullmatch(RUN_ID_PATTERN, derived_id(*items))


def test_different_parts_derive_different_ids() -> None:
    cases = [(), ("",), ("", ""), ("ab", "c"), ("a", "bc"), ("abc",), ("é",), ("\ud800",), ("?",), ("a", "b", "c")]
    assert len({derived_id(*case) for case in cases}) == len(cases)


def test_a_key_reads_as_its_parts() -> None:
    assert join_key("task", "send:email", "10% off|today") == "task|send:email|10%25 off%7Ctoday"


@given(st.lists(parts, min_size=1, max_size=4), st.lists(parts, min_size=1, max_size=4))
def test_different_parts_make_different_keys(some: list[str], others: list[str]) -> None:
    assert (join_key(*some) == join_key(*others)) == (some == others)


@given(st.lists(parts, min_size=1, max_size=4))
def test_the_parts_of_a_key_can_be_told_apart_again(items: list[str]) -> None:
    assert [part.replace("%7C", "|").replace("%25", "%") for part in join_key(*items).split("|")] == items


def test_tokens_are_base64url_without_padding() -> None:
    assert [token_text(raw) for raw in (b"", b"\xfb", b"\xff\xef", bytes(32))] == ["", "-w", "_-8", "A" * 43]


@given(st.binary(min_size=1, max_size=48))
def test_a_token_is_an_identifier(raw: bytes) -> None:
    TypeAdapter(Identifier).validate_python(token_text(raw))
