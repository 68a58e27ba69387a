"""The table in DynamoDB, by boto3's low-level client."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeVar

from aiki_push.adapters.storage.dynamodb.failures import explained
from aiki_push.adapters.storage.dynamodb.items import noted, noted_key, plain
from aiki_push.adapters.storage.sizes import check_batch, check_limits
from aiki_push.adapters.storage.table import (
    INDEX_ATTRIBUTES,
    Absent,
    Always,
    Condition,
    Delete,
    EtagIs,
    Item,
    Key,
    Page,
    Put,
    Query,
    Write,
)
from aiki_push.domain.errors import StorageUnavailable

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_dynamodb.type_defs import (
        DeleteItemInputTypeDef,
        PutItemInputTypeDef,
        QueryInputTypeDef,
        TransactWriteItemTypeDef,
    )


RequestT = TypeVar("RequestT", "PutItemInputTypeDef", "DeleteItemInputTypeDef")


class DynamoDbTable:
    """A Table in DynamoDB. `client` should not retry by itself (`client.dynamodb_client` makes such a one): the stores do."""

    def __init__(self, client: "DynamoDBClient", name: str) -> None:
        self._client = client
        self._name = name

    def get(self, key: Key) -> Item | None:
        """See Table."""
        with explained():
            answer = self._client.get_item(TableName=self._name, Key=noted_key(key), ConsistentRead=True)
        return plain(answer["Item"]) if "Item" in answer else None

    def get_many(self, keys: Sequence[Key]) -> Sequence[Item]:
        """See Table. What DynamoDB leaves for later, because an answer is full or it is busy, is asked for again."""
        check_batch(keys)
        found: list[Item] = []
        left = [noted_key(key) for key in keys]
        while left:
            with explained():
                answer = self._client.batch_get_item(RequestItems={self._name: {"Keys": left, "ConsistentRead": True}})
            found += map(plain, answer["Responses"].get(self._name, ()))
            unread = answer["UnprocessedKeys"].get(self._name, {"Keys": []})["Keys"]
            if len(unread) == len(left):
                raise StorageUnavailable("DynamoDB is busy (no item of a batch was read)")
            left = [dict(key) for key in unread]
        return found

    def write(self, writes: Sequence[Write], token: str) -> None:
        """See Table."""
        check_limits(writes)
        with explained(writes):
            if len(writes) > 1:
                actions = [self._action(write) for write in writes]
                self._client.transact_write_items(TransactItems=actions, ClientRequestToken=token)
            elif isinstance(writes[0], Put):
                self._client.put_item(**self._put(writes[0]))
            else:
                self._client.delete_item(**self._delete(writes[0]))

    def query(self, query: Query, after: Item | None = None) -> Page:
        """See Table. DynamoDB ends a page at 1 MB."""
        pk_name, sk_name = INDEX_ATTRIBUTES[query.index] if query.index else ("PK", "SK")
        request: QueryInputTypeDef = {
            "TableName": self._name,
            "KeyConditionExpression": "#pk = :pk AND #sk BETWEEN :low AND :high",
            "ExpressionAttributeNames": {"#pk": pk_name, "#sk": sk_name},
            "ExpressionAttributeValues": {":pk": {"S": query.pk}, ":low": {"S": query.low}, ":high": {"S": query.high}},
            "ScanIndexForward": query.ascending,
            "ConsistentRead": query.index is None,
        }
        if query.index:
            request["IndexName"] = query.index
        if query.page_size:
            request["Limit"] = query.page_size
        if after is not None:
            request["ExclusiveStartKey"] = noted({name: after[name] for name in {"PK", "SK", pk_name, sk_name}})
        with explained():
            answer = self._client.query(**request)
        items = tuple(map(plain, answer["Items"]))
        return Page(items, is_last=not items or "LastEvaluatedKey" not in answer)

    def _put(self, put: Put) -> "PutItemInputTypeDef":
        request: PutItemInputTypeDef = {"TableName": self._name, "Item": noted(put.item)}
        return _conditional(request, put.condition)

    def _delete(self, delete: Delete) -> "DeleteItemInputTypeDef":
        request: DeleteItemInputTypeDef = {"TableName": self._name, "Key": noted_key(delete.key)}
        return _conditional(request, delete.condition)

    def _action(self, write: Write) -> "TransactWriteItemTypeDef":
        if isinstance(write, Put):
            return {"Put": self._put(write)}
        return {"Delete": self._delete(write)}


def _conditional(request: RequestT, condition: Condition) -> RequestT:
    """`request` with its condition, and the wish for the item that is there where this fails."""
    match condition:
        case Always():
            return request
        case Absent():
            request["ConditionExpression"] = "attribute_not_exists(PK)"
        case EtagIs(etag):
            request["ConditionExpression"] = "etag = :etag"
            request["ExpressionAttributeValues"] = {":etag": {"S": etag}}
    request["ReturnValuesOnConditionCheckFailure"] = "ALL_OLD"
    return request
