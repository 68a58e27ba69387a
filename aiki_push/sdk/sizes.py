"""The size of what is sent, checked before it is."""

from aiki_push.domain.canonical_json import compact_json
from aiki_push.domain.errors import PayloadTooLarge
from aiki_push.domain.values import MAX_VALUE_BYTES, Json

SMALL_TEXT = MAX_VALUE_BYTES // 8
"""Characters that fit whatever they are: an escape is six bytes."""


def check_size(value: Json, *, at: str) -> None:
    """Raises PayloadTooLarge, naming the place, for JSON that the server would refuse."""
    if value is None or isinstance(value, int | float) or (isinstance(value, str) and len(value) < SMALL_TEXT):
        return
    size = len(compact_json(value).encode())
    if size > MAX_VALUE_BYTES:
        raise PayloadTooLarge(
            f"{at} has {size} bytes of JSON; the limit is {MAX_VALUE_BYTES}", field=at, size=size, limit=MAX_VALUE_BYTES
        )
