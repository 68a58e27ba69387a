"""The arguments of a call: one input by position, or none."""

import inspect
from collections.abc import Callable, Mapping, Sequence


def check_arguments(
    handler: Callable[..., object], given: Sequence[object], named: Mapping[str, object], *, taken: int, of: str
) -> None:
    """Raises TypeError unless exactly `taken` arguments are given, by position. `of` says in messages whose call it is."""
    if len(given) == taken and not named:
        return
    try:
        inspect.signature(handler).bind(*given, **named)
    except TypeError as error:
        raise TypeError(f"{of}: {error}") from None
    raise TypeError(f"{of}: the input is given by position")
