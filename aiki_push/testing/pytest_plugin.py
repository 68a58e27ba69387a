"""Fixtures for pytest. In a project's `conftest.py`: `pytest_plugins = ["aiki_push.testing.pytest_plugin"]`."""

from collections.abc import Iterator

import pytest

from aiki_push.testing.harness import Harness


@pytest.fixture
def harness() -> Iterator[Harness]:
    """A harness without workflow versions: `harness.add(order_v1)` gives it one. Closed after the test."""
    with Harness() as harness:
        yield harness
