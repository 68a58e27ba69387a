import math
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from aiki_push.domain.durations import MAX_DURATION_MS
from aiki_push.domain.errors import NonRetryableError, SettingsError
from aiki_push.domain.retry import (
    Exponential,
    Fixed,
    Jittered,
    Never,
    RetryStrategy,
    exponential,
    fixed,
    is_retryable,
    jittered,
    never,
    retry_delay_ms,
)
from aiki_push.domain.values import DurationMs, Json

stored: TypeAdapter[RetryStrategy] = TypeAdapter(RetryStrategy)

delays = st.integers(1, MAX_DURATION_MS)
growing = {
    "max_attempts": st.integers(1, 2**31 - 1),
    "base_delay_ms": delays,
    "factor": st.floats(1, allow_infinity=False, allow_nan=False),
    "max_delay_ms": st.none() | delays,
}
strategies: st.SearchStrategy[RetryStrategy] = st.one_of(
    st.just(never()),
    st.builds(fixed, max_attempts=growing["max_attempts"], delay_ms=delays),
    st.builds(exponential, **growing),
    st.builds(jittered, **growing),
)


class Declined(Exception):
    class ByBank(Exception):
        pass


class DeclinedForever(Declined):
    pass


class GaveUp(NonRetryableError):
    pass


@pytest.mark.parametrize(
    ("strategy", "jitter", "expected"),
    [
        (never(), 0.5, [None, None]),
        (fixed(max_attempts=1, delay_ms=100), 0.5, [None]),
        (fixed(max_attempts=3, delay_ms=100), 0.5, [100, 100, None, None]),
        (exponential(max_attempts=5, base_delay_ms=500), 0.5, [500, 1_000, 2_000, 4_000, None]),
        (exponential(max_attempts=5, base_delay_ms=100, factor=3, max_delay_ms=500), 0.5, [100, 300, 500, 500, None]),
        (exponential(max_attempts=4, base_delay_ms=5, factor=1.5), 0.5, [5, 8, 12, None]),
        (exponential(max_attempts=3, base_delay_ms=1_000, max_delay_ms=10), 0.5, [10, 10, None]),
        (jittered(max_attempts=4, base_delay_ms=100), 0.25, [25, 50, 100, None]),
        (jittered(max_attempts=4, base_delay_ms=101), 0.25, [26, 51, 101, None]),
        (jittered(max_attempts=4, base_delay_ms=100), 0.0, [1, 1, 1, None]),
        (jittered(max_attempts=4, base_delay_ms=100, max_delay_ms=60), 0.5, [50, 60, 60, None]),
    ],
)
def test_delays_follow_the_strategy_until_its_attempts_are_used(
    strategy: RetryStrategy, jitter: float, expected: list[int | None]
) -> None:
    assert [retry_delay_ms(strategy, attempt, jitter) for attempt in range(1, len(expected) + 1)] == expected


def test_delays_that_grow_beyond_every_number_end_at_ten_years() -> None:
    strategy = exponential(max_attempts=2**31 - 1, base_delay_ms=MAX_DURATION_MS, factor=1e308)
    assert retry_delay_ms(strategy, 2**31 - 2, 0.5) == MAX_DURATION_MS
    assert retry_delay_ms(Jittered(**strategy.model_dump(exclude={"type"})), 2**31 - 2, 0.5) == MAX_DURATION_MS
    assert retry_delay_ms(Jittered(**strategy.model_dump(exclude={"type"})), 2**31 - 2, 0.0) == 1


@given(strategies, st.integers(1, 2**31), st.floats(0, 1, exclude_max=True))
def test_a_delay_is_at_least_a_millisecond_and_at_most_its_limit(strategy: RetryStrategy, attempt: int, jitter: float) -> None:
    delay = retry_delay_ms(strategy, attempt, jitter)
    if isinstance(strategy, Never) or attempt >= strategy.max_attempts:
        assert delay is None
    else:
        limit = strategy.delay_ms if isinstance(strategy, Fixed) else strategy.max_delay_ms or MAX_DURATION_MS
        assert delay is not None
        assert 1 <= delay <= limit


@given(strategies)
def test_a_strategy_comes_back_from_json_as_it_went_in(strategy: RetryStrategy) -> None:
    assert stored.validate_json(stored.dump_json(strategy)) == strategy


def test_a_document_may_leave_out_what_has_a_default() -> None:
    document = {"type": "exponential", "max_attempts": 3, "base_delay_ms": 100}
    assert stored.validate_python(document) == exponential(max_attempts=3, base_delay_ms=100, factor=2.0, max_delay_ms=None)


def test_the_stored_form_names_every_parameter() -> None:
    assert [
        stored.dump_python(never(), mode="json"),
        stored.dump_python(fixed(max_attempts=3, delay_ms=100, non_retryable=(ValueError,)), mode="json"),
        stored.dump_python(exponential(max_attempts=3, base_delay_ms=100), mode="json"),
        stored.dump_python(jittered(max_attempts=3, base_delay_ms=100, factor=1.5, max_delay_ms=900), mode="json"),
    ] == [
        {"type": "never", "non_retryable": []},
        {"type": "fixed", "max_attempts": 3, "delay_ms": 100, "non_retryable": ["ValueError"]},
        {
            "type": "exponential",
            "max_attempts": 3,
            "base_delay_ms": 100,
            "factor": 2.0,
            "max_delay_ms": None,
            "non_retryable": [],
        },
        {
            "type": "jittered",
            "max_attempts": 3,
            "base_delay_ms": 100,
            "factor": 1.5,
            "max_delay_ms": 900,
            "non_retryable": [],
        },
    ]


@pytest.mark.parametrize(
    ("document", "place"),
    [
        ({"type": "sometimes"}, ()),
        ({"max_attempts": 3, "delay_ms": 1}, ()),
        ({"type": "never", "max_attempts": 3}, ("never", "max_attempts")),
        ({"type": "fixed", "max_attempts": 3}, ("fixed", "delay_ms")),
        ({"type": "fixed", "max_attempts": "3", "delay_ms": 1}, ("fixed", "max_attempts")),
        ({"type": "fixed", "max_attempts": True, "delay_ms": 1}, ("fixed", "max_attempts")),
        ({"type": "fixed", "max_attempts": 3, "delay_ms": 0}, ("fixed", "delay_ms")),
        ({"type": "fixed", "max_attempts": 3, "delay_ms": 1.5}, ("fixed", "delay_ms")),
        ({"type": "fixed", "max_attempts": 2**31, "delay_ms": 1}, ("fixed", "max_attempts")),
        ({"type": "fixed", "max_attempts": 3, "delay_ms": MAX_DURATION_MS + 1}, ("fixed", "delay_ms")),
        ({"type": "jittered", "max_attempts": 3, "base_delay_ms": -1}, ("jittered", "base_delay_ms")),
        ({"type": "jittered", "max_attempts": 3, "base_delay_ms": 1, "jitter": 1}, ("jittered", "jitter")),
        ({"type": "exponential", "max_attempts": 3, "base_delay_ms": 1, "factor": 0.99}, ("exponential", "factor")),
        ({"type": "exponential", "max_attempts": 3, "base_delay_ms": 1, "factor": math.inf}, ("exponential", "factor")),
        ({"type": "exponential", "max_attempts": 3, "base_delay_ms": 1, "factor": math.nan}, ("exponential", "factor")),
        ({"type": "exponential", "max_attempts": 3, "base_delay_ms": 1, "max_delay_ms": 0}, ("exponential", "max_delay_ms")),
        ({"type": "never", "non_retryable": [""]}, ("never", "non_retryable", 0)),
        ({"type": "never", "non_retryable": ["X"] * 101}, ("never", "non_retryable")),
    ],
)
def test_a_document_that_is_no_strategy_is_refused_at_its_field(document: dict[str, Json], place: tuple[str | int, ...]) -> None:
    with pytest.raises(ValidationError) as refused:
        stored.validate_python(document)
    assert [fault["loc"] for fault in refused.value.errors()] == [place]


@pytest.mark.parametrize(
    ("define", "message"),
    [
        (lambda: fixed(max_attempts=0, delay_ms=1), "fixed(): max_attempts: Input should be greater than 0"),
        (
            lambda: exponential(max_attempts=1, base_delay_ms=1, factor=0.5),
            "exponential(): factor: Input should be greater than or equal to 1",
        ),
        (
            lambda: jittered(max_attempts=1, base_delay_ms=1, max_delay_ms=-1),
            "jittered(): max_delay_ms: Input should be greater than 0",
        ),
        (lambda: never(non_retryable=("",)), "never(): non_retryable.0: String should have at least 1 character"),
        (
            lambda: never(non_retryable="ValueError"),
            "non_retryable must be a tuple or list of exception classes, or their names",
        ),
        (
            lambda: never(non_retryable=ValueError),  # type: ignore[arg-type]  # the mistake under test
            "non_retryable must be a tuple or list of exception classes, or their names",
        ),
        (
            lambda: never(non_retryable=(int,)),  # type: ignore[arg-type]  # the mistake under test
            "non_retryable holds neither an exception class nor the name of one: type",
        ),
        (
            lambda: never(non_retryable=[ValueError("secret")]),  # type: ignore[list-item]  # the mistake under test
            "non_retryable holds neither an exception class nor the name of one: ValueError",
        ),
    ],
)
def test_a_wrong_argument_is_named_where_the_strategy_is_defined(define: Callable[[], RetryStrategy], message: str) -> None:
    with pytest.raises(SettingsError) as refused:
        define()
    assert str(refused.value) == message


def test_classes_are_kept_by_their_qualified_names() -> None:
    listed = fixed(max_attempts=2, delay_ms=1, non_retryable=[ValueError, Declined.ByBank, "requests.exceptions.Timeout"])
    assert listed == Fixed(
        max_attempts=2, delay_ms=DurationMs(1), non_retryable=("ValueError", "Declined.ByBank", "requests.exceptions.Timeout")
    )


@pytest.mark.parametrize(
    ("non_retryable", "error", "retryable"),
    [
        ((), ValueError(), True),
        ((), NonRetryableError(), False),
        ((), GaveUp(), False),
        ((KeyError,), ValueError(), True),
        ((ValueError,), ValueError(), False),
        ((ValueError,), UnicodeError(), False),
        ((UnicodeError,), ValueError(), True),
        ((Declined,), DeclinedForever(), False),
        ((Declined,), Declined.ByBank(), True),
        (("ByBank",), Declined.ByBank(), True),
        (("Declined.ByBank",), Declined.ByBank(), False),
        (("builtins.ValueError",), ValueError(), False),
        (("other.ValueError",), ValueError(), True),
        ((ValueError,), ExceptionGroup("", [KeyError(), ValueError()]), False),
        ((ValueError,), ExceptionGroup("", [KeyError(), TypeError()]), True),
        ((ExceptionGroup,), ExceptionGroup("", [KeyError()]), False),
        ((), ExceptionGroup("", [ExceptionGroup("", [GaveUp()])]), False),
    ],
)
def test_the_class_of_an_error_decides_whether_it_is_worth_another_attempt(
    non_retryable: tuple[type[BaseException] | str, ...], error: Exception, retryable: bool
) -> None:
    assert is_retryable(fixed(max_attempts=9, delay_ms=1, non_retryable=non_retryable), error) is retryable
    assert is_retryable(never(non_retryable=non_retryable), error) is retryable


def test_a_cause_that_was_wrapped_on_purpose_does_not_count() -> None:
    error = ValueError()
    error.__cause__ = GaveUp()
    assert is_retryable(Exponential(max_attempts=2, base_delay_ms=DurationMs(1)), error)
