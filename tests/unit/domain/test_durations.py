from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aiki_push.domain.durations import MAX_DURATION_MS, Duration, duration_ms
from aiki_push.domain.errors import SettingsError


def test_a_duration_is_the_sum_of_its_fields() -> None:
    assert Duration(days=1, hours=2, minutes=3, seconds=4, milliseconds=5) == timedelta(
        days=1, hours=2, minutes=3, seconds=4, milliseconds=5
    )


def test_fields_may_be_fractions_and_some_may_be_zero() -> None:
    assert Duration(hours=0, minutes=1.5) == timedelta(seconds=90)


def test_a_duration_needs_a_field() -> None:
    with pytest.raises(SettingsError, match="at least one of days, hours, minutes, seconds, milliseconds"):
        Duration()


@pytest.mark.parametrize("amount", [-1, -0.001, float("nan"), float("inf")])
def test_a_field_that_is_no_length_is_named(amount: float) -> None:
    with pytest.raises(SettingsError) as refused:
        Duration(hours=1, minutes=amount)
    assert str(refused.value) == "Duration(minutes=) must be a finite number that is not negative"


def test_a_duration_beyond_any_timedelta_is_refused() -> None:
    with pytest.raises(SettingsError) as refused:
        Duration(days=1e300, hours=1)
    assert str(refused.value) == "Duration(days=, hours=) is longer than ten years"


@pytest.mark.parametrize(
    ("value", "milliseconds"),
    [
        (timedelta(microseconds=1), 1),
        (timedelta(milliseconds=1), 1),
        (timedelta(microseconds=1_001), 2),
        (timedelta(days=3), 259_200_000),
        (timedelta(days=3_650), MAX_DURATION_MS),
    ],
)
def test_a_part_of_a_millisecond_counts_as_a_whole_one(value: timedelta, milliseconds: int) -> None:
    assert duration_ms(value, name="timeout") == milliseconds


@given(st.timedeltas(timedelta(microseconds=1), timedelta(days=3_650)))
def test_the_milliseconds_are_never_shorter_and_less_than_one_longer(value: timedelta) -> None:
    assert timedelta(0) <= timedelta(milliseconds=duration_ms(value, name="timeout")) - value < timedelta(milliseconds=1)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (timedelta(0), "timeout must be longer than zero"),
        (timedelta(microseconds=-1), "timeout must be longer than zero"),
        (timedelta(days=-1), "timeout must be longer than zero"),
        (timedelta(days=3_650, microseconds=1), "timeout must not be longer than ten years (3650 days)"),
        (timedelta.max, "timeout must not be longer than ten years (3650 days)"),
        (5_000, "timeout must be a timedelta, not int"),
        (None, "timeout must be a timedelta, not NoneType"),
    ],
)
def test_what_is_no_wait_is_refused_by_name(value: timedelta, message: str) -> None:
    with pytest.raises(SettingsError) as refused:
        duration_ms(value, name="timeout")
    assert str(refused.value) == message
