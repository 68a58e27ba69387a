"""The one definition of the table, in the shape of CloudFormation's `AWS::DynamoDB::Table` properties.

The development server and tests create their tables from it, and `template.yaml` is checked against it.
"""

from collections.abc import Mapping
from typing import TypeAlias

Definition: TypeAlias = "str | bool | list[Definition] | Mapping[str, Definition]"


def _key(partition: str, sort: str) -> Definition:
    return [{"AttributeName": partition, "KeyType": "HASH"}, {"AttributeName": sort, "KeyType": "RANGE"}]


def _index(name: str, partition: str, sort: str, *extras: str) -> Definition:
    projection: Mapping[str, Definition] = (
        {"ProjectionType": "INCLUDE", "NonKeyAttributes": [*extras]} if extras else {"ProjectionType": "KEYS_ONLY"}
    )
    return {"IndexName": name, "KeySchema": _key(partition, sort), "Projection": projection}


TABLE: Mapping[str, Definition] = {
    "BillingMode": "PAY_PER_REQUEST",
    "AttributeDefinitions": [
        {"AttributeName": name, "AttributeType": "S"}
        for name in ("PK", "SK", "due", "due_at", "ready", "ready_at", "by_workflow", "by_state", "created")
    ],
    "KeySchema": _key("PK", "SK"),
    "GlobalSecondaryIndexes": [
        _index("due", "due", "due_at"),
        _index("ready", "ready", "ready_at", "due_at"),
        _index("by_workflow", "by_workflow", "created"),
        _index("by_state", "by_state", "created"),
    ],
    "PointInTimeRecoverySpecification": {"PointInTimeRecoveryEnabled": True},
}
"""No time to live: what is deleted, and when, is decided by the rules of retention."""
