"""What DynamoDB counts and limits: sizes of items in bytes, write units, and the limits of one request.

Rules: "DynamoDB item sizes and formats", "Read/write capacity" and "Quotas" in the Amazon DynamoDB developer guide.
"""

from collections.abc import Sequence

from aiki_push.adapters.storage.table import AttributeValue, Item, Key, Put, Write
from aiki_push.domain.errors import InternalError, PayloadTooLarge

WRITE_UNIT_BYTES = 1024
MAX_ITEM_BYTES = 400 * 1024
MAX_TRANSACTION_BYTES = 4 * 1024 * 1024
MAX_TRANSACTION_WRITES = 100
MAX_BATCH_READS = 100


def text_size(text: str) -> int:
    """Bytes of `text` in UTF-8."""
    return len(text) if text.isascii() else len(text.encode())


def _value_size(value: AttributeValue) -> int:
    if isinstance(value, str):
        return text_size(value)
    if isinstance(value, bytes):
        return len(value)
    # One byte for two significant digits, and one more.
    return (len(str(abs(value)).rstrip("0")) + 1) // 2 + 1


def item_size(item: Item) -> int:
    """Bytes that DynamoDB counts for `item`: names and values."""
    return sum(text_size(name) + _value_size(value) for name, value in item.items())


def write_units(size: int) -> int:
    """Write units for an item of `size` bytes, outside a transaction; inside one it costs twice as much."""
    return max(1, -(-size // WRITE_UNIT_BYTES))


def check_limits(writes: Sequence[Write]) -> None:
    """Refuse what DynamoDB would refuse as too large, naming the item.

    Raises PayloadTooLarge, or InternalError where `writes` names an item twice.
    """
    total = 0
    for put in (write for write in writes if isinstance(write, Put)):
        size = item_size(put.item)
        total += size
        if size > MAX_ITEM_BYTES:
            raise _too_large(f"the item {put.key} is too large", size, MAX_ITEM_BYTES, item=str(put.key))
    if len(writes) > MAX_TRANSACTION_WRITES:
        raise _too_large("one commit holds too many writes", len(writes), MAX_TRANSACTION_WRITES)
    if total > MAX_TRANSACTION_BYTES:
        raise _too_large("one commit holds too many bytes", total, MAX_TRANSACTION_BYTES)
    if len({write.key for write in writes}) < len(writes):
        raise InternalError("one commit writes the same item twice; it has to be split or merged")


def check_batch(keys: Sequence[Key]) -> None:
    """Raises InternalError where `keys` are no batch: too many, or one of them twice."""
    if len(keys) > MAX_BATCH_READS or len(set(keys)) < len(keys):
        raise InternalError(f"one read asks for more than {MAX_BATCH_READS} items, or for one of them twice")


def _too_large(what: str, size: int, limit: int, **fields: str) -> PayloadTooLarge:
    return PayloadTooLarge(f"{what}: {size}, and the limit is {limit}", size=size, limit=limit, **fields)
