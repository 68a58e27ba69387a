"""Lengths of time as authors write them, and as the rest of the package counts them."""

from datetime import timedelta
from math import isfinite

from aiki_push.domain.errors import SettingsError
from aiki_push.domain.values import DurationMs

MAX_DURATION_MS = DurationMs(10 * 365 * 86_400_000)
"""Ten years of 365 days; nothing in this package waits longer."""


def Duration(  # noqa: N802 - it reads as the type it makes
    *,
    days: float | None = None,
    hours: float | None = None,
    minutes: float | None = None,
    seconds: float | None = None,
    milliseconds: float | None = None,
) -> timedelta:
    """The sum of the fields, as a timedelta: `Duration(minutes=30)`. For authors who want mistakes named at once.

    Raises:
        SettingsError: no field is given, or one is negative, not finite or out of a timedelta's range.
    """
    fields = {"days": days, "hours": hours, "minutes": minutes, "seconds": seconds, "milliseconds": milliseconds}
    given = {name: amount for name, amount in fields.items() if amount is not None}
    if not given:
        raise SettingsError("Duration() needs at least one of days, hours, minutes, seconds, milliseconds")
    for name, amount in given.items():
        if not (isfinite(amount) and amount >= 0):
            raise SettingsError(f"Duration({name}=) must be a finite number that is not negative")
    try:
        return timedelta(**given)
    except OverflowError:
        raise SettingsError(f"Duration({', '.join(f'{name}=' for name in given)}) is longer than ten years") from None


def duration_ms(value: timedelta, *, name: str) -> DurationMs:
    """`value` in milliseconds, part of a millisecond rounded up: 1 to `MAX_DURATION_MS`. `name` is what the message calls it.

    Raises:
        SettingsError: zero, negative, over ten years, or no timedelta.
    """
    if not isinstance(value, timedelta):
        raise SettingsError(f"{name} must be a timedelta, not {type(value).__name__}")
    whole, rest = divmod(value, timedelta(milliseconds=1))
    length = whole + bool(rest)
    if length <= 0:
        raise SettingsError(f"{name} must be longer than zero")
    if length > MAX_DURATION_MS:
        raise SettingsError(f"{name} must not be longer than ten years (3650 days)")
    return DurationMs(length)
