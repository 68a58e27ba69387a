"""When a failed attempt is followed by another. A strategy is stored as JSON in the options of a run.

An attempt is an execution that ended by itself; the first counts. Which errors are not worth another attempt is kept as names of
classes, because the strategy of a run must be readable where the author's classes cannot be imported, and after they moved.
"""

import sys
from collections.abc import Sequence
from math import ceil
from typing import Annotated, Literal, TypeAlias, TypeVar

from pydantic import Field, ValidationError

from aiki_push.domain.durations import MAX_DURATION_MS
from aiki_push.domain.errors import NonRetryableError, SettingsError
from aiki_push.domain.values import DurationMs, Frozen

ErrorNames: TypeAlias = Sequence[type[BaseException] | str]
"""Exception classes, or their names: `ValueError`, `Outer.Inner`, or with the module `requests.exceptions.Timeout`."""

_Attempts = Annotated[int, Field(gt=0, lt=2**31, strict=True)]
_Delay = Annotated[DurationMs, Field(gt=0, le=MAX_DURATION_MS, strict=True)]
_ErrorName = Annotated[str, Field(min_length=1, max_length=256)]


class _Strategy(Frozen):
    non_retryable: Annotated[tuple[_ErrorName, ...], Field(max_length=100)] = ()


class Never(_Strategy):
    """One attempt. What `non_retryable` lists in a task's strategy also ends the retries of its workflow."""

    type: Literal["never"] = "never"


class Fixed(_Strategy):
    """Up to `max_attempts`, with the same delay before each but the first."""

    type: Literal["fixed"] = "fixed"
    max_attempts: _Attempts
    delay_ms: _Delay


class _Growing(_Strategy):
    max_attempts: _Attempts
    base_delay_ms: _Delay
    factor: Annotated[float, Field(ge=1, allow_inf_nan=False, strict=True)] = 2.0
    max_delay_ms: _Delay | None = None


class Exponential(_Growing):
    """Up to `max_attempts`; the delay after attempt a is base_delay_ms * factor ** (a - 1), at most `max_delay_ms`."""

    type: Literal["exponential"] = "exponential"


class Jittered(_Growing):
    """As `Exponential`, but a random part of that delay (full jitter), so that what failed together does not return together."""

    type: Literal["jittered"] = "jittered"


RetryStrategy = Annotated[Never | Fixed | Exponential | Jittered, Field(discriminator="type")]


def never(*, non_retryable: ErrorNames = ()) -> Never:
    """One attempt; the default everywhere.

    Raises:
        SettingsError: naming the argument at fault.
    """
    return _defined(Never, non_retryable=non_retryable)


def fixed(*, max_attempts: int, delay_ms: int, non_retryable: ErrorNames = ()) -> Fixed:
    """Up to `max_attempts` executions, `delay_ms` apart; errors of the classes in `non_retryable` end them.

    Raises:
        SettingsError: naming the argument at fault.
    """
    return _defined(Fixed, max_attempts=max_attempts, delay_ms=delay_ms, non_retryable=non_retryable)


def exponential(
    *,
    max_attempts: int,
    base_delay_ms: int,
    factor: float = 2.0,
    max_delay_ms: int | None = None,
    non_retryable: ErrorNames = (),
) -> Exponential:
    """Up to `max_attempts` executions; the delay starts at `base_delay_ms` and is multiplied by `factor` each time.

    Raises:
        SettingsError: naming the argument at fault.
    """
    growth = {"base_delay_ms": base_delay_ms, "factor": factor, "max_delay_ms": max_delay_ms}
    return _defined(Exponential, max_attempts=max_attempts, **growth, non_retryable=non_retryable)


def jittered(
    *,
    max_attempts: int,
    base_delay_ms: int,
    factor: float = 2.0,
    max_delay_ms: int | None = None,
    non_retryable: ErrorNames = (),
) -> Jittered:
    """As `exponential`, but each delay is a random part of that.

    Raises:
        SettingsError: naming the argument at fault.
    """
    growth = {"base_delay_ms": base_delay_ms, "factor": factor, "max_delay_ms": max_delay_ms}
    return _defined(Jittered, max_attempts=max_attempts, **growth, non_retryable=non_retryable)


def retry_delay_ms(strategy: RetryStrategy, attempt: int, jitter: float) -> DurationMs | None:
    """How long to wait after the failed `attempt` (1 is the first), rounded up to at least 1 ms; None if it was the last one.

    `jitter` is a random number in [0, 1), which only `Jittered` uses. Without a `max_delay_ms`, ten years is the longest delay.
    """
    if isinstance(strategy, Never) or attempt >= strategy.max_attempts:
        return None
    if isinstance(strategy, Fixed):
        return strategy.delay_ms
    part = jitter if isinstance(strategy, Jittered) else 1.0
    try:
        growth = strategy.factor ** (attempt - 1)
    except OverflowError:
        growth = sys.float_info.max  # not infinity, of which a jitter of 0 would make nan
    limit = strategy.max_delay_ms or MAX_DURATION_MS
    return DurationMs(max(1, ceil(min(strategy.base_delay_ms * part * growth, limit))))


def is_retryable(strategy: RetryStrategy, error: BaseException) -> bool:
    """False for a NonRetryableError, for an error with a class or base class in `non_retryable`, and for a group that holds one.

    It does not ask whether an attempt is left. Classes match by `__qualname__`, with or without their module, so two classes of
    the same name in different modules are told apart only where the strategy gives the module.
    """
    names = {name for kind in type(error).__mro__ for name in (kind.__qualname__, f"{kind.__module__}.{kind.__qualname__}")}
    if isinstance(error, NonRetryableError) or not names.isdisjoint(strategy.non_retryable):
        return False
    return not isinstance(error, BaseExceptionGroup) or all(is_retryable(strategy, part) for part in error.exceptions)


_Defined = TypeVar("_Defined", bound=_Strategy)


def _defined(strategy: type[_Defined], *, non_retryable: ErrorNames, **fields: float | None) -> _Defined:
    try:
        return strategy.model_validate({**fields, "non_retryable": _error_names(non_retryable)})
    except ValidationError as error:
        fault = error.errors(include_url=False, include_context=False)[0]
        place = ".".join(str(step) for step in fault["loc"])
        raise SettingsError(f"{strategy.__name__.lower()}(): {place}: {fault['msg']}") from None


def _error_names(errors: ErrorNames) -> tuple[str, ...]:
    # A lone string is a sequence too, of strings that name nothing.
    if isinstance(errors, str) or not isinstance(errors, Sequence):
        raise SettingsError("non_retryable must be a tuple or list of exception classes, or their names")
    return tuple(_error_name(error) for error in errors)


def _error_name(error: type[BaseException] | str) -> str:
    if isinstance(error, str):
        return error
    if isinstance(error, type) and issubclass(error, BaseException):
        return error.__qualname__
    raise SettingsError(f"non_retryable holds neither an exception class nor the name of one: {type(error).__name__}")
