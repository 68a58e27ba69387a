"""Items in DynamoDB's own notation: `{"S": text}`, `{"N": digits}`, `{"B": bytes}`."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from aiki_push.adapters.storage.table import AttributeValue, Item, Key
from aiki_push.domain.errors import InternalError

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.type_defs import AttributeValueTypeDef


def noted(item: Item) -> "dict[str, AttributeValueTypeDef]":
    """`item` as DynamoDB takes it."""
    return {name: _noted_value(value) for name, value in item.items()}


def noted_key(key: Key) -> "dict[str, AttributeValueTypeDef]":
    """`key` as DynamoDB takes it."""
    return {"PK": {"S": key.pk}, "SK": {"S": key.sk}}


def plain(item: "Mapping[str, AttributeValueTypeDef]") -> Item:
    """The item that DynamoDB gave. Raises InternalError on a type that we never write."""
    return {name: _plain_value(name, value) for name, value in item.items()}


def _noted_value(value: AttributeValue) -> "AttributeValueTypeDef":
    if isinstance(value, str):
        return {"S": value}
    if isinstance(value, bytes):
        return {"B": value}
    return {"N": str(value)}


def _plain_value(name: str, value: "AttributeValueTypeDef") -> AttributeValue:
    match value:
        case {"S": str(text)}:
            return text
        case {"N": str(digits)}:
            return int(digits)
        case {"B": bytes(content)}:
            return content
        case _:
            raise InternalError(f"the attribute {name} has a type that this package never writes: {', '.join(value)}")
