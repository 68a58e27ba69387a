"""Random workflows under random faults end as they do when nothing goes wrong, and no execution sees another past."""

import pytest

from tests.integration.random_faults import Disturbances, Execution, Fault, Kind, random_disturbances
from tests.integration.random_programs import random_program

BATCH = 30


@pytest.mark.timeout(180)
@pytest.mark.parametrize("batch", range(10))
def test_random_workflows_end_as_if_nothing_had_gone_wrong(batch: int) -> None:
    for seed in range(batch * BATCH, batch * BATCH + BATCH):
        program = random_program(seed)
        calm = Execution(program).run()
        execution = Execution(program, random_disturbances(seed, calm.accesses, calm.hours))
        try:
            execution.run()
            assert execution.outcome == calm.outcome
        except Exception as fault:
            raise AssertionError(f"seed {seed}, after {execution.happened}: {fault}") from fault


@pytest.mark.timeout(180)
@pytest.mark.parametrize("seed", [2, 16])
@pytest.mark.parametrize("kind", ["crash before", "crash after"])
def test_a_crash_at_any_access_of_the_table_changes_nothing(seed: int, kind: Kind) -> None:
    program = random_program(seed)
    calm = Execution(program).run()
    for place in calm.by_executors:
        execution = Execution(program, Disturbances((Fault(place, kind),))).run()
        assert (place, execution.outcome) == (place, calm.outcome)
