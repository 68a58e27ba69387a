"""The engines that hold a table."""

import pytest

from aiki_push.adapters.storage.dynamodb.table import DynamoDbTable
from aiki_push.adapters.storage.memory.table import MemoryTable
from aiki_push.adapters.storage.table import Table


def table_of(engine: str, request: pytest.FixtureRequest) -> Table:
    """An empty table, in memory or in the simulated AWS."""
    if engine == "memory":
        return MemoryTable()
    return DynamoDbTable(request.getfixturevalue("dynamodb"), request.getfixturevalue("table_name"))
