"""A handful of simulations; `make simulate` runs hundreds."""

import pytest

from tests.simulation.simulation import simulate


@pytest.mark.timeout(120)
@pytest.mark.parametrize("seed", range(12))
def test_the_system_keeps_its_promises_while_everything_fails_at_random(seed: int) -> None:
    assert simulate(seed).schedule.steps > 0
