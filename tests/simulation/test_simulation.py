"""A handful of simulations; `make simulate` runs hundreds."""

import os
import subprocess
import sys

import pytest

from tests.simulation.final_rules import is_quiet as is_finished
from tests.simulation.planted import UnfencedStore
from tests.simulation.servers import StoreFactory
from tests.simulation.simulation import Failure, simulate


@pytest.mark.parametrize("seed", range(12))
def test_the_system_keeps_its_promises_while_everything_fails_at_random(seed: int) -> None:
    stored = simulate(seed).audit.stored.values()
    assert stored
    assert all(map(is_finished, stored))


def test_a_seed_is_the_same_simulation_in_every_process() -> None:
    command = [sys.executable, "-m", "tests.simulation", "--seed", "1", "--steps", "500"]
    first, second = (
        subprocess.run(command, env=os.environ | {"PYTHONHASHSEED": hash_seed}, capture_output=True, text=True, check=True)
        for hash_seed in ("1", "2")
    )
    assert first.stdout == second.stdout
    assert first.stdout.count("\n") > 100


def simulate_until_failure(store: StoreFactory) -> None:
    for seed in range(50):
        simulate(seed, store=store)


def test_a_recovery_that_leaves_the_next_slot_free_is_found() -> None:
    with pytest.raises(Failure, match=r"seed \d+ went wrong in turn \d+: run .*: claim .* wrote slot \d+ while"):
        simulate_until_failure(UnfencedStore)
