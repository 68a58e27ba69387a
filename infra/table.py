"""The table as it is deployed. `template.yaml` is checked against it; the code that reads and writes the table defines it."""

from aiki_push.adapters.storage.dynamodb.definition import TABLE

__all__ = ["TABLE"]
