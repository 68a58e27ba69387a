"""Integration tests run on the same engines as the store's contract."""

from tests.contracts.conftest import dynamodb, table, table_name

__all__ = ["dynamodb", "table", "table_name"]
