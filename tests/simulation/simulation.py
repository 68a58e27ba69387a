"""One simulation: a time of faults, then calm, in which every run must come to its end."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from random import Random

from aiki_push.adapters.storage.store import SingleTableStore
from aiki_push.domain.errors import AikiError
from aiki_push.domain.limits import Limits
from aiki_push.domain.run_states import Stalled
from aiki_push.ports.api.runs import RequeueRun
from aiki_push.sdk.executor import ExecutorConfig
from tests.simulation.audit import Audit
from tests.simulation.faults import CALM, SECOND_US, Misfortune, draw
from tests.simulation.fleet import Fleet, client_of
from tests.simulation.network import Network, NetworkPublisher, NetworkWakeups
from tests.simulation.process import start_process
from tests.simulation.rules import is_finished
from tests.simulation.schedule import Schedule, Violation
from tests.simulation.segments import PACES_S, Executions
from tests.simulation.servers import NAMESPACE, Servers, StoreFactory
from tests.simulation.workflows import SCENARIOS

STEPS = 3_000
"""Turns in the time of faults."""

CALM_STEPS = 60_000
"""Turns within which everything must have ended after the faults have."""

LONGEST_START_DELAY_S = 120

AFTERMATH_US = 300 * SECOND_US
"""For so long after the last run ended, messages may still arrive."""


class Failure(AssertionError):
    """A simulation that went wrong: `trace` is what happened, in order."""

    def __init__(self, seed: int, steps: int, violation: Violation, trace: Sequence[str]) -> None:
        super().__init__(f"seed {seed} went wrong in turn {steps}: {violation}")
        self.trace = trace


class Simulation:
    """The whole system of one seed."""

    def __init__(self, seed: int, store: StoreFactory = SingleTableStore) -> None:
        random = Random(seed)
        self.schedule = Schedule(random)
        self.misfortune = Misfortune(random, draw(random))
        self.audit = Audit(self.schedule.report)
        self.network = network = Network(self.schedule, self.misfortune)
        config = ExecutorConfig(
            claim_refresh_interval_ms=random.choice([1_000, 30_000]),
            max_inline_wait_ms=random.choice([0, 10, 2_000]),
            max_interruptions=1_000_000,
        )
        self.fleet = Fleet(random.randint(1, 3), self.schedule, self.misfortune, network, config)
        self.servers = network.servers = Servers(
            self.schedule,
            self.misfortune,
            observe=self.audit.observe,
            wakeups=NetworkWakeups(network),
            publisher=NetworkPublisher(network, self.fleet.deliver),
            limits=Limits(),
            store=store,
        )
        self.audit.executions = self.fleet.executions = Executions(self.schedule, self.audit, random, random.choice(PACES_S))
        self._starter = start_process("client", self.schedule)
        self._starts = [
            self._starter.spawn(self._start(name, f"start {number}", network))
            for number, name in enumerate(random.choices(sorted(SCENARIOS), k=random.randint(1, 6)))
        ]
        self.servers.sweep_for_ever()
        self._calm = random.choice([CALM, replace(CALM, lose_hints=1)])

    async def _start(self, name: str, reference: str, network: Network) -> None:
        client = client_of(self._starter, self.schedule, network)
        start = SCENARIOS[name].version.with_("reference.id", reference)
        if self.schedule.random.random() < 0.3:
            start = start.with_("delay", timedelta(seconds=self.schedule.random.randint(1, LONGEST_START_DELAY_S)))
        while True:
            try:
                await start.start(client)
            except AikiError as error:
                self.schedule.note(f"client: {name} could not be started: {error!r}")
            else:
                return

    def run(self, steps: int) -> None:
        """Everything. Raises Violation."""
        try:
            while self.schedule.steps < steps and not self._has_finished:
                self._suffer()
                self.schedule.step()
            self._calm_down()
            self._finish()
            self._check_endings()
        finally:
            self.servers.crash_all()
            self._starter.kill()
            self._starter.bury()
            self.fleet.bury()

    def _suffer(self) -> None:
        self.fleet.suffer()
        running = [stored.run for stored in self.audit.stored.values() if stored.run.claim is not None]
        if running and self.misfortune.strikes(self.misfortune.faults.rob):
            self.servers.rob(self.schedule.random.choice(running))

    def _calm_down(self) -> None:
        self.schedule.note("the faults end")
        self.misfortune.faults = self._calm
        self.network.heal()
        self.fleet.thaw()

    def _finish(self) -> None:
        for _ in range(CALM_STEPS):
            self.schedule.step()
            self._mend()
            if self._has_finished:
                break
        else:
            raise Violation(f"not everything has ended {CALM_STEPS} steps after the faults: {self._states()}")
        until_us = self.schedule.now_us + AFTERMATH_US
        while self.schedule.now_us < until_us:
            self.schedule.step()

    @property
    def _has_finished(self) -> bool:
        return all(start.done() for start in self._starts) and all(map(is_finished, self.audit.stored.values()))

    def _mend(self) -> None:
        """Do what an operator would: requeue what executors that died again and again could not even begin."""
        for run_id, stored in tuple(self.audit.stored.items()):
            if stored.run.state == Stalled(reason="crash_loop"):
                self.servers.server.call(
                    NAMESPACE, RequeueRun(run_id=stored.run.id, operation_id=f"requeue-{stored.run.revision}")
                )
            elif isinstance(stored.run.state, Stalled):
                raise Violation(f"run {run_id} is stalled: {stored.transitions[-1]}")

    def _check_endings(self) -> None:
        if faults := list(self.audit.faults_of_endings()):
            raise Violation("; ".join(faults))

    def _states(self) -> list[str]:
        return [f"{run_id} {stored.run.workflow} {stored.run.state}" for run_id, stored in self.audit.stored.items()]


def simulate(seed: int, steps: int = STEPS, store: StoreFactory = SingleTableStore) -> Simulation:
    """The simulation of `seed`, over. Raises Failure."""
    simulation = Simulation(seed, store)
    try:
        simulation.run(steps)
    except Violation as violation:
        raise Failure(seed, simulation.schedule.steps, violation, simulation.schedule.trace) from violation
    return simulation
