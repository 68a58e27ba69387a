"""The workflows that the simulation runs, by name."""

from tests.simulation import family_workflows, task_workflows, waiting_workflows
from tests.simulation.endings import Scenario

SCENARIOS: dict[str, Scenario] = {
    scenario.version.name: scenario
    for scenario in (*task_workflows.SCENARIOS, *waiting_workflows.SCENARIOS, *family_workflows.SCENARIOS)
}
