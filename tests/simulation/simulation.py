"""One simulation: a time of faults, then calm, in which every run must come to its end."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from random import Random
from typing import Any

from aiki_push.domain.errors import AikiError
from aiki_push.domain.limits import Limits
from aiki_push.domain.run import Directive, Run
from aiki_push.domain.run_states import PARKED, Paused, Stalled
from aiki_push.domain.waits import ANY_KEY
from aiki_push.ports.api.controls import RequeueRun, ResumeRun
from aiki_push.ports.api.events import SendEvent
from aiki_push.ports.api.operation import Operation
from tests.simulation import scenes
from tests.simulation.audit import Audit
from tests.simulation.faults import CALM, SECOND_US, Misfortune
from tests.simulation.final_rules import faults_of_the_end, is_quiet
from tests.simulation.fleet import Fleet, client_of
from tests.simulation.network import Network, NetworkPublisher, NetworkWakeups
from tests.simulation.outsiders import Outsiders
from tests.simulation.process import start_process
from tests.simulation.schedule import Schedule, Violation
from tests.simulation.segments import Executions
from tests.simulation.servers import NAMESPACE, SOUND, SOUND_WITH_SMALL_PAGES, SWEEP_INTERVAL_S, Parts, Servers
from tests.simulation.workflows import SCENARIOS

STEPS = 3_000
"""Turns in the time of faults."""

CALM_STEPS = 20_000
"""Turns within which everything must have ended after the faults have."""

LONGEST_START_DELAY_S = 120

MENDING = 0.02
"""How often, in each turn, somebody looks at what the runs need from outside while there are faults; afterwards, always."""

SHARED = ("kid", "shared", "shared")
"""The run that the parents of one workflow share, its reference and its input: here it is nobody's child."""

AFTERMATH_US = 300 * SECOND_US
"""For so long after the last run ended, messages may still arrive."""


class Failure(AssertionError):
    """A simulation that went wrong: `trace` is what happened, in order."""

    def __init__(self, seed: int, steps: int, violation: Violation, trace: Sequence[str]) -> None:
        super().__init__(f"seed {seed} went wrong in turn {steps}: {violation}")
        self.trace = trace


class Simulation:
    """The whole system of one seed."""

    def __init__(self, seed: int, parts: Parts | None = None) -> None:
        random = Random(seed)
        self.schedule = Schedule(random)
        scene = scenes.draw(random)
        self.misfortune = Misfortune(random, scene.faults)
        self.audit = Audit(self.schedule.report)
        self.network = network = Network(self.schedule, self.misfortune)
        self.fleet = Fleet(self.schedule, self.misfortune, network)
        self.world = Outsiders(self.schedule, network, self.audit, scene.habits)
        self.servers = network.servers = Servers(
            self.schedule,
            self.misfortune,
            observe=self.audit.observe,
            wakeups=NetworkWakeups(network),
            publisher=NetworkPublisher(network, self.fleet.deliver),
            limits=random.choice([Limits(), Limits(max_age_ms=600_000, max_recoveries=3)]),
            sweep_interval_s=scene.sweep_interval_s,
            parts=parts or random.choice([SOUND, SOUND_WITH_SMALL_PAGES]),
        )
        executions = Executions(self.schedule, self.audit, self.audit.traces, random, scene.pace_s)
        self.audit.executions = self.fleet.executions = executions
        self._starter = start_process("client", self.schedule)
        self._starts = [self._starter.spawn(self._start(name, f"start {number}")) for number, name in enumerate(scene.names)]
        if "sharing" in scene.names and random.random() < 0.5:
            self._starts.append(self._starter.spawn(self._start(*SHARED)))
        self.servers.sweep_for_ever()
        self._calm = random.choice([CALM, replace(CALM, lose_hints=1)])

    async def _start(self, name: str, reference: str, *given: str) -> None:
        client = client_of(self._starter, self.schedule, self.network)
        start = SCENARIOS[name].version.with_("reference.id", reference)
        if self.schedule.random.random() < 0.3:
            start = start.with_("delay", timedelta(seconds=self.schedule.random.randint(1, LONGEST_START_DELAY_S)))
        while True:
            try:
                await start.start(client, *given)
            except AikiError as error:
                self.schedule.note(f"client: {name} could not be started: {error!r}")
            else:
                return

    def run(self, steps: int) -> None:
        """Everything. Raises Violation."""
        try:
            while self.schedule.steps < steps and not self._is_over:
                self._suffer()
                self.schedule.step()
            self._calm_down()
            self._finish()
            if faults := list(faults_of_the_end(self.audit.stored, self.audit.content)):
                raise Violation("; ".join(faults))
        finally:
            self.servers.crash_all()
            for process in (self._starter, self.world.process):
                process.kill()
                process.bury()
            self.fleet.bury()

    def _suffer(self) -> None:
        self.fleet.suffer()
        self.world.meddle()
        wanted = [operation for stored in self.audit.stored.values() if (operation := self._wanted(stored.run))]
        if wanted and self.schedule.random.random() < MENDING:
            self.world.ask(self.schedule.random.choice(wanted))
        running = [stored.run for stored in self.audit.stored.values() if stored.run.claim is not None]
        if running and self.misfortune.strikes(self.misfortune.faults.rob):
            self.servers.rob(self.schedule.random.choice(running))
        if running and self.misfortune.strikes(self.misfortune.faults.direct):
            run = self.schedule.random.choice(running)
            action = self.schedule.random.choice(["pause", "pause", "cancel"])
            directive = Directive.model_validate({"action": action, "operation_id": f"direct-{self.schedule.steps}"})
            if self.world.may_operate(run.id):
                self.servers.direct(run, directive)

    def _calm_down(self) -> None:
        self.schedule.note("the faults end")
        self.misfortune.faults = self._calm
        self.servers.sweep_interval_s = SWEEP_INTERVAL_S
        self.network.heal()
        self.fleet.thaw()

    def _finish(self) -> None:
        """Go on until nothing has happened for a while, and nobody has anything to mend."""
        quiet_since_us: int | None = None
        for _ in range(CALM_STEPS):
            self.schedule.step()
            if self._mend() or not self._is_quiet:
                quiet_since_us = None
            elif quiet_since_us is None:
                quiet_since_us = self.schedule.now_us
            elif self.schedule.now_us - quiet_since_us > AFTERMATH_US:
                return
        raise Violation(f"not everything has ended {CALM_STEPS} steps after the faults: {self._states()}")

    @property
    def _is_quiet(self) -> bool:
        is_started = all(start.done() for start in self._starts) and self.world.are_done
        return is_started and all(map(is_quiet, self.audit.stored.values()))

    @property
    def _is_over(self) -> bool:
        return self._is_quiet and all(stored.has_ended for stored in self.audit.stored.values())

    def _mend(self) -> bool:
        """Do what an operator would, and the world, sooner or later: requeue and resume runs, send what they wait for."""
        mending = [operation for stored in self.audit.stored.values() if (operation := self._wanted(stored.run))]
        for operation in mending:
            self.servers.server.call(NAMESPACE, operation)
        return bool(mending)

    def _wanted(self, run: Run) -> Operation[Any] | None:
        """What `run` needs from outside."""
        operation_id = f"mend-{run.revision}"
        if isinstance(run.state, Stalled):
            if run.state.reason not in ("crash_loop", "undelivered"):
                raise Violation(f"run {run.id} is stalled: {self.audit.stored[run.id].transitions[-1]}")
            return RequeueRun(run_id=run.id, operation_id=operation_id)
        if isinstance(run.state, Paused) and not self.world.habits.leaves_paused:
            return ResumeRun(run_id=run.id, operation_id=operation_id)
        events = [wait.key for wait in run.waits if wait.kind == "event"]
        if events and run.due_at is None and run.state.status in PARKED and not self.world.habits.leaves_waiting:
            event = events[0].replace(ANY_KEY, "bell")
            return SendEvent(run_id=run.id, event=event, data=f"{event}#{operation_id}", reference=operation_id)
        return None

    def _states(self) -> list[str]:
        return [f"{run_id} {stored.run.workflow} {stored.run.state}" for run_id, stored in self.audit.stored.items()]


def simulate(seed: int, steps: int = STEPS, parts: Parts | None = None) -> Simulation:
    """The simulation of `seed`, over. Raises Failure."""
    simulation = Simulation(seed, parts)
    try:
        simulation.run(steps)
    except Violation as violation:
        raise Failure(seed, simulation.schedule.steps, violation, simulation.schedule.trace) from violation
    return simulation
