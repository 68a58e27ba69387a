"""The table that is deployed is the table that the store is written for."""

from aiki_push.adapters.storage.table import INDEX_ATTRIBUTES, INDEX_EXTRAS
from infra.table import TABLE


def schema(partition: str, sort: str) -> list[dict[str, str]]:
    return [{"AttributeName": partition, "KeyType": "HASH"}, {"AttributeName": sort, "KeyType": "RANGE"}]


def test_the_table_has_the_keys_and_the_indexes_of_the_store_and_no_others() -> None:
    assert TABLE["KeySchema"] == schema("PK", "SK")
    assert TABLE["GlobalSecondaryIndexes"] == [
        {"IndexName": name, "KeySchema": schema(*attributes), "Projection": projection(INDEX_EXTRAS[name])}
        for name, attributes in INDEX_ATTRIBUTES.items()
    ]


def projection(extras: tuple[str, ...]) -> dict[str, object]:
    if not extras:
        return {"ProjectionType": "KEYS_ONLY"}
    return {"ProjectionType": "INCLUDE", "NonKeyAttributes": [*extras]}


def test_every_key_attribute_is_a_string_and_no_other_attribute_is_defined() -> None:
    names = {"PK", "SK", *(name for attributes in INDEX_ATTRIBUTES.values() for name in attributes)}
    definitions = TABLE["AttributeDefinitions"]
    assert isinstance(definitions, list)
    assert len(definitions) == len(names)
    assert all({"AttributeName": name, "AttributeType": "S"} in definitions for name in names)


def test_the_table_is_billed_on_demand_can_be_restored_to_any_moment_and_deletes_nothing_by_itself() -> None:
    assert TABLE["BillingMode"] == "PAY_PER_REQUEST"
    assert TABLE["PointInTimeRecoverySpecification"] == {"PointInTimeRecoveryEnabled": True}
    assert "TimeToLiveSpecification" not in TABLE
