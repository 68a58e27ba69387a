"""The protocol between executors and server, explored through every order in which requests arrive.

Whatever an executor has sent can arrive at any later time, any number of times or never, and any answer can be lost. Executors are
honest: they do one thing at a time, and an append that got no answer is repeated or given up. They die at any moment.
"""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from aiki_push.domain.log_records import KnownRecord, TaskCancelled, TaskStarted
from aiki_push.domain.run_states import PARKED, Queued, Stalled
from aiki_push.domain.values import Inline, TimestampMs
from aiki_push.domain.waits import Wait
from aiki_push.ports.api.checkpoints import AppendCheckpoint, Appended, Complete, HandBack, Overtaken, Park, SegmentEnd
from aiki_push.ports.api.claims import Claimed, ClaimRun, RefreshClaim, ReleaseClaim
from aiki_push.ports.api.operation import Operation
from tests.simulation.schedule import Violation
from tests.simulation.stored_states import Move, Overtaking, Result, StoredStates

PARK = Park(waits=(Wait(kind="timer", key="timer|0", ordinal=1, deadline_at=TimestampMs(1)),), seen_seq=0)
FINISH = Complete(output=Inline(value="done"))

MAX_ACCESSES = 10
"""More than any request needs."""


@dataclass(frozen=True, slots=True)
class Owner:
    """An executor: what it knows of its latest claim, and the request that it waits for; "" once it has ended or lost its segment."""

    name: str
    claims: int = 0
    token: str = ""
    position: int = 0
    appends: int = 0
    waits_for: str = ""

    @property
    def claim_id(self) -> str:
        """That of its latest claim."""
        return f"{self.name}{self.claims}"


@dataclass(frozen=True, slots=True)
class State:
    """What is stored (its number), the executors, and the names of all requests that were sent."""

    stored: int
    owners: tuple[Owner, ...]
    sent: frozenset[str]


@dataclass(frozen=True, slots=True)
class Bounds:
    """How far to look: no claim, recovery or wake-up from this revision on; so many appends in a segment at most.

    `overtaking`: a server process may be overtaken by another one anywhere in a request.
    """

    revisions: int
    appends: int
    overtaking: bool = False


class Protocol:
    """The states that can be reached. `give_up` is how an executor ends its segment after an append that got no answer."""

    def __init__(self, states: StoredStates, bounds: Bounds, give_up: SegmentEnd | HandBack | None = None) -> None:
        self._states = states
        self._bounds = bounds
        self._give_up = give_up or HandBack()
        self._moves: dict[str, Move] = {"recovery": "recover", "wake-up": "wake"}

    def explore(self) -> int:
        """Reach every state; how many there are. Raises Violation, with the way there."""
        first = State(0, (Owner("A"), Owner("B")), frozenset())
        came_from: dict[State, tuple[State, str] | None] = {first: None}
        waiting = deque([first])
        while waiting:
            state = waiting.popleft()
            try:
                for what, after in self._successors(state):
                    if after not in came_from:
                        came_from[after] = (state, what)
                        waiting.append(after)
            except Violation as violation:
                raise Violation(f"{violation}\nafter:\n{_way(came_from, state)}") from violation
        return len(came_from)

    def _successors(self, state: State) -> Iterator[tuple[str, State]]:
        run = self._states.stored[state.stored].run
        if isinstance(run.state, Stalled):
            raise Violation(f"honest executors made the run {run.state}")
        if run.revision < self._bounds.revisions and isinstance(run.state, Queued):
            for owner in state.owners[: 1 + state.owners[0].claims]:  # it does not matter which executor comes first
                yield from self._claims(state, owner)
        for owner in state.owners:
            if owner.waits_for.startswith("append"):
                yield self._checkpoint(state, owner, "give-up", self._give_up)
        for name in self._possible(state):
            yield from self._happens(state, name)

    def _possible(self, state: State) -> list[str]:
        """The moves that servers can make: whatever was sent may arrive, a run can be recovered, or woken."""
        run = self._states.stored[state.stored].run
        if run.revision >= self._bounds.revisions:
            return [name for name in sorted(state.sent) if not isinstance(self._moves[name], ClaimRun)]
        by_itself = ["recovery"] if run.claim is not None else ["wake-up"] if run.state.status in PARKED else []
        return sorted(state.sent) + by_itself

    # ---- what executors send

    def _claims(self, state: State, old: Owner) -> Iterator[tuple[str, State]]:
        """An executor, started anew perhaps, claims the run; nobody hears of its earlier segment any more."""
        owner = Owner(old.name, old.claims + 1)
        operation = ClaimRun(run_id=self._states.run_id, claim_id=owner.claim_id, executor=owner.name)
        what, after = self._send(_with(state, old, owner), owner, "claim", operation)
        for then, reached in self._happens(after, f"claim of {owner.claim_id}"):
            yield f"{what}; {then}", reached

    def _goes_on(self, state: State, owner: Owner) -> Iterator[tuple[str, State]]:
        """What an executor may send that owns the run and waits for nothing."""
        if owner.appends < self._bounds.appends:
            yield self._checkpoint(state, owner, "append", None)
        if owner.appends == 0:
            yield self._send(state, owner, "release", ReleaseClaim(run_id=self._states.run_id, token=owner.token))
        yield self._checkpoint(state, owner, "park", PARK)
        yield self._checkpoint(state, owner, "finish", FINISH)

    def _checkpoint(self, state: State, owner: Owner, kind: str, end: SegmentEnd | HandBack | None) -> tuple[str, State]:
        checkpoint = AppendCheckpoint(
            run_id=self._states.run_id,
            token=owner.token,
            checkpoint_id=f"{owner.claim_id}-{owner.position}-{kind}",
            position=owner.position,
            records=(_record(f"{kind} of {owner.claim_id} at {owner.position}", is_start=end is None),),
            end=end,
        )
        return self._send(state, owner, kind, checkpoint)

    def _keep(self, state: State, owner: Owner) -> State:
        """The claim is refreshed from now on."""
        name = self._name(f"refresh of {owner.claim_id}", RefreshClaim(run_id=self._states.run_id, token=owner.token))
        return replace(state, sent=state.sent | {name})

    def _send(self, state: State, owner: Owner, kind: str, operation: Operation[Any]) -> tuple[str, State]:
        name = self._name(f"{kind} of {owner.claim_id}" + (f" at {owner.position}" if owner.token else ""), operation)
        after = _with(state, owner, replace(owner, waits_for=name))
        return f"{name} is sent", replace(after, sent=state.sent | {name})

    def _name(self, name: str, operation: Operation[Any]) -> str:
        while self._moves.setdefault(name, operation) != operation:
            name += "'"  # the same request after another past
        return name

    # ---- what servers do

    def _happens(self, state: State, name: str) -> Iterator[tuple[str, State]]:
        result = self._result(state, name)
        after = replace(state, stored=result.number)
        yield name, after
        for what, heard in self._hears(after, name, result.answer):
            yield f"{name}, answered; {what}", heard
        if self._bounds.overtaking:
            for other in self._possible(state):
                yield from self._overtaken(state, name, other)

    def _overtaken(self, state: State, name: str, other: str) -> Iterator[tuple[str, State]]:
        for access in range(2, MAX_ACCESSES):
            result = self._result(state, name, other, access)
            if result.overtaker_answer is None:
                return
            after = replace(state, stored=result.number)
            both = f"{name}, overtaken by {other} before its {access}. access to the table"
            yield both, after
            for answered, answer in ((name, result.answer), (other, result.overtaker_answer)):
                for what, heard in self._hears(after, answered, answer):
                    yield f"{both}; {answered} is answered; {what}", heard

    def _result(self, state: State, name: str, other: str = "", access: int = 0) -> Result:
        overtaking = Overtaking(self._moves[other], access) if other else None
        try:
            return self._states.apply(state.stored, self._moves[name], overtaking)
        except Violation as violation:
            what = f"{name}, overtaken by {other} before its {access}. access" if other else name
            raise Violation(f"{what}: {violation}") from violation

    def _hears(self, state: State, name: str, answer: object) -> Iterator[tuple[str, State]]:
        """The executor that waits for this request, if one does, gets its answer and sends the next one."""
        owner = next((owner for owner in state.owners if owner.waits_for == name), None)
        if owner is None:
            return
        match answer:
            case Claimed(token=token, position=position):
                heard = replace(owner, token=token, position=position, waits_for="")
                state = self._keep(state, heard)
            case Appended(token=token, position=position) | Overtaken(token=token, position=position):
                heard = replace(owner, token=token, position=position, appends=owner.appends + 1, waits_for="")
            case _:
                yield "its segment ends", _with(state, owner, Owner(owner.name, owner.claims))
                return
        yield from self._goes_on(_with(state, owner, heard), heard)


def _record(task_id: str, *, is_start: bool) -> KnownRecord:
    at = TimestampMs(1)
    if is_start:
        return TaskStarted(at=at, task_id=task_id, name="t", input_hash="h", ordinal=0, attempt=1)
    return TaskCancelled(at=at, task_id=task_id)


def _with(state: State, old: Owner, new: Owner) -> State:
    return replace(state, owners=tuple(new if owner is old else owner for owner in state.owners))


def _way(came_from: dict[State, tuple[State, str] | None], state: State) -> str:
    steps: list[str] = []
    while (step := came_from[state]) is not None:
        state, what = step
        steps.append(what)
    return "\n".join(f"{number:3}  {what}" for number, what in enumerate(reversed(steps), 1))
