"""The line between executors and server: messages are lost, doubled, late and out of order."""

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Protocol, TypeVar

from aiki_push.domain.errors import InvalidToken, NotFound, RevisionConflict, ServerUnreachable
from aiki_push.domain.values import TimestampMs
from aiki_push.ports.api.claims import GetInbox, RefreshClaim
from aiki_push.ports.api.operation import Operation
from aiki_push.ports.publisher import Declined, Deferred, Failed, Outcome, Published, ReadyRun
from aiki_push.ports.wakeups import Hint
from aiki_push.testing import FAKE_NOW
from tests.simulation.faults import SECOND_US, Misfortune
from tests.simulation.process import Process
from tests.simulation.schedule import Schedule
from tests.simulation.segments import current_segment
from tests.simulation.servers import label

R = TypeVar("R")

TIMEOUT_S = 10
ATTEMPTS = 2
"""As the HTTP client: 20 seconds in all."""

PUSH_TIMEOUT_US = 3 * SECOND_US


class Serving(Protocol):
    """The part of the servers that the network needs."""

    def request(self, operation: Operation[Any], on_answer: Callable[[object], None]) -> None: ...
    def hint(self, hint: Hint) -> None: ...
    def pause(self, delay_us: int, where: str) -> None: ...


class Network:
    """Carries messages. `servers` is set once it is known."""

    servers: Serving

    def __init__(self, schedule: Schedule, misfortune: Misfortune) -> None:
        self._schedule = schedule
        self._misfortune = misfortune
        self._cut_off_until_us: dict[Process, int] = {}
        self._mute: set[Process] = set()

    def connect(self, process: Process) -> None:
        """Let `process` take part."""
        if self._misfortune.strikes(self._misfortune.faults.mute):
            self._mute.add(process)

    def heal(self) -> None:
        """Everything reaches everybody."""
        self._cut_off_until_us.clear()
        self._mute.clear()

    def _is_cut_off(self, process: Process) -> bool:
        return self._cut_off_until_us.get(process, 0) > self._schedule.now_us

    def request(self, sender: Process, operation: Operation[Any], reply: asyncio.Future[Any]) -> None:
        """Send `operation`; `reply` gets an answer, perhaps."""
        what = f"{label(operation)} of {sender.name}"

        def answered(outcome: object) -> None:
            self._carry(f"answer to {what}", lambda: self._hand_over(sender, reply, outcome))

        is_cut_now = self._misfortune.strikes(self._misfortune.faults.cut)
        is_unheard = isinstance(operation, RefreshClaim | GetInbox) and sender in self._mute
        is_cut_before = is_cut_now and self._misfortune.strikes(0.5)
        if not (is_unheard or is_cut_before or self._is_cut_off(sender)):
            self._carry(f"request {what}", lambda: self.servers.request(operation, answered))
        if is_cut_now:
            self._schedule.note(f"{sender.name} is cut off")
            self._cut_off_until_us[sender] = self._schedule.now_us + self._misfortune.pause_us()

    def _hand_over(self, receiver: Process, reply: asyncio.Future[Any], outcome: object) -> None:
        is_deaf = receiver.is_frozen and self._misfortune.strikes(0.5)
        if not receiver.is_dead and not is_deaf and not self._is_cut_off(receiver):
            receiver.call_soon(_resolve, reply, outcome)

    def hint(self, hint: Hint) -> None:
        """Bring `hint` to a server when it is due."""
        early_us = max(0, (hint.due_at - FAKE_NOW) * 1_000 - self._schedule.now_us)
        if not self._misfortune.strikes(self._misfortune.faults.lose_hints):
            self._carry(f"hint about run {hint.run_id}", lambda: self.servers.hint(hint), early_us)

    def push(self, ready: ReadyRun, deliver: Callable[[], None]) -> Outcome:
        """Bring a push to an executor; what the pusher makes of it, which need not be what happened. Takes time."""
        self._carry(f"push of run {ready.run_id} at revision {ready.revision}", deliver)
        random = self._misfortune.random
        self.servers.pause(random.randrange(PUSH_TIMEOUT_US), "waits for the answer to its push")
        if not self._misfortune.strikes(self._misfortune.faults.lose):
            return Published()
        until = TimestampMs(FAKE_NOW + self._schedule.now_us // 1_000 + random.randrange(60_000))
        outcomes: list[Outcome] = [Published(), Declined(), Failed(error="connection reset"), Deferred(until=until)]
        return random.choice(outcomes)

    def _carry(self, what: str, deliver: Callable[[], None], least_us: int = 0) -> None:
        delays_us = self._misfortune.message_delays_us()
        if not delays_us:
            self._schedule.note(f"lost: {what}")
        for delay_us in delays_us:
            self._schedule.later(least_us + delay_us, f"arrives: {what}", deliver)


def _resolve(reply: asyncio.Future[Any], outcome: object) -> None:
    if reply.done():
        return
    if isinstance(outcome, BaseException):
        reply.set_exception(outcome)
    else:
        reply.set_result(outcome)


class NetworkApi:
    """The Api of one process, with the patience of the HTTP client."""

    def __init__(self, network: Network, process: Process) -> None:
        self._network = network
        self._process = process

    async def call(self, operation: Operation[R]) -> R:
        """See Api."""
        if segment := current_segment():
            segment.sends(operation)
        for _ in range(ATTEMPTS):
            if self._process.is_dead:
                raise asyncio.CancelledError
            reply: asyncio.Future[R] = self._process.create_future()
            self._network.request(self._process, operation, reply)
            try:
                async with asyncio.timeout(TIMEOUT_S):
                    answer = await reply
            except TimeoutError:
                continue
            except (RevisionConflict, InvalidToken, NotFound):
                if segment := current_segment():
                    segment.told_lost()
                raise
            if segment := current_segment():
                segment.heard(operation, answer)
            return answer
        raise ServerUnreachable("no answer")

    async def close(self) -> None:
        """See Api."""


class NetworkWakeups:
    """Wakeups over the network."""

    def __init__(self, network: Network) -> None:
        self._network = network

    def send(self, *hints: Hint) -> None:
        """See Wakeups."""
        for hint in hints:
            self._network.hint(hint)


class NetworkPublisher:
    """A Publisher that pushes to whom `receiver` names."""

    def __init__(self, network: Network, deliver: Callable[[ReadyRun], None]) -> None:
        self._network = network
        self._deliver = deliver

    def publish(self, runs: Sequence[ReadyRun]) -> Sequence[Outcome]:
        """See Publisher."""
        return [self._network.push(run, partial(self._deliver, run)) for run in runs]
