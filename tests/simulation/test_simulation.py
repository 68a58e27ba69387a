"""A handful of simulations; `make simulate` runs hundreds."""

import os
import subprocess
import sys

import pytest

from tests.simulation.final_rules import is_quiet
from tests.simulation.simulation import simulate


@pytest.mark.parametrize("seed", range(12))
def test_the_system_keeps_its_promises_while_everything_fails_at_random(seed: int) -> None:
    stored = simulate(seed).audit.stored.values()
    assert stored
    assert all(map(is_quiet, stored))


def test_a_seed_is_the_same_simulation_in_every_process() -> None:
    command = [sys.executable, "-m", "tests.simulation", "--seed", "1", "--steps", "500"]
    first, second = (
        subprocess.run(command, env=os.environ | {"PYTHONHASHSEED": hash_seed}, capture_output=True, text=True, check=True)
        for hash_seed in ("1", "2")
    )
    assert first.stdout == second.stdout
    assert first.stdout.count("\n") > 100
