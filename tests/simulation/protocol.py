"""The protocol between executors, server and the world, explored through every order in which requests arrive.

Whatever somebody has sent can arrive at any later time, any number of times or never, and any answer can be lost. Executors are
honest: they do one thing at a time, and an append that got no answer is repeated or given up. They die at any moment.
"""

from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from aiki_push.domain.run_states import PARKED, Queued, Stalled
from aiki_push.ports.api.checkpoints import AppendCheckpoint, Appended, HandBack, InboxMoved, Overtaken, SegmentEnd
from aiki_push.ports.api.claims import Claimed, ClaimRun, RefreshClaim, ReleaseClaim
from aiki_push.ports.api.controls import CancelRun, PauseRun, ResumeRun
from aiki_push.ports.api.events import SendEvent
from aiki_push.ports.api.operation import Operation
from tests.simulation.owners import EVENT, Owner
from tests.simulation.schedule import Violation
from tests.simulation.stored_states import CHILD, Move, Overtaking, Result, Runs, StoredStates

MAX_ACCESSES = 12
"""More than any request needs."""

BY_SERVERS: Mapping[str, Move] = {
    "recovery": "recover",
    "wake-up": "wake",
    "follow-up": "follow up",
    "child's follow-up": "follow up the child",
    "directive to pause": "direct to pause",
    "directive to cancel": "direct to cancel",
}


@dataclass(frozen=True, slots=True)
class State:
    """What is stored (its number), the executors, and the names of all requests that were sent."""

    stored: int
    owners: tuple[Owner, ...]
    sent: frozenset[str]


@dataclass(frozen=True, slots=True)
class Bounds:
    """How far to look: no claim, recovery or wake-up from this revision on; so many appends in a segment at most.

    `outside`: what the world has sent, and may arrive at any time: "pause", "resume", "cancel", "event", "another event", "child's end",
    "directive to pause", "directive to cancel". `overtaking`: a server process may be overtaken by another one anywhere in a request.
    `child`: an executor may start a child.
    """

    revisions: int
    appends: int
    outside: tuple[str, ...] = ()
    overtaking: bool = False
    child: bool = False


class Protocol:
    """The states that can be reached. `give_up` is how an executor ends its segment after an append that got no answer."""

    def __init__(self, states: StoredStates, bounds: Bounds, give_up: SegmentEnd | HandBack | None = None) -> None:
        self._states = states
        self._bounds = bounds
        self._give_up = give_up or HandBack()
        run_id = states.run_id
        self._moves: dict[str, Move] = {
            **BY_SERVERS,
            "pause": PauseRun(run_id=run_id, operation_id="pause"),
            "resume": ResumeRun(run_id=run_id, operation_id="resume"),
            "cancel": CancelRun(run_id=run_id, operation_id="cancel"),
            "event": SendEvent(run_id=run_id, event=EVENT, data=1, reference="1"),
            "another event": SendEvent(run_id=run_id, event=EVENT, data=2, reference="2"),
            "child's end": CancelRun(run_id=CHILD, operation_id="end"),
        }

    def explore(self) -> int:
        """Reach every state; how many there are. Raises Violation, with the way there."""
        first = State(0, (Owner("A"), Owner("B")), frozenset(self._bounds.outside))
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
        run = self._runs(state)[self._states.run_id].run
        if isinstance(run.state, Stalled):
            raise Violation(f"honest executors made the run {run.state}")
        if run.revision < self._bounds.revisions and isinstance(run.state, Queued):
            for owner in state.owners[: 1 + state.owners[0].claims]:  # it does not matter which executor comes first
                yield from self._claims(state, owner)
        for owner in state.owners:
            if owner.waits_for.startswith("append"):
                yield self._send(state, owner, "give-up", owner.give_up(self._states.run_id, self._give_up))
        for name in self._possible(state):
            yield from self._happens(state, name)

    def _runs(self, state: State) -> Runs:
        return self._states.stored[state.stored]

    def _possible(self, state: State) -> list[str]:
        """The moves that servers can make: whatever was sent may arrive, a run can be recovered, woken, and followed up."""
        runs = self._runs(state)
        run, child = runs[self._states.run_id].run, runs.get(CHILD)
        arriving = [name for name in sorted(state.sent) if child is not None or name != "child's end"]
        follow_ups = ["follow-up"] * bool(run.duties) + ["child's follow-up"] * bool(child and child.run.duties)
        if run.revision >= self._bounds.revisions:
            return [name for name in arriving if not isinstance(self._moves[name], ClaimRun)] + follow_ups
        by_itself = ["recovery"] if run.claim is not None else ["wake-up"] if run.state.status in PARKED else []
        return arriving + follow_ups + by_itself

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
        run_id = self._states.run_id
        if owner.appends < self._bounds.appends:
            yield self._send(state, owner, "append", owner.append(run_id))
            if self._bounds.child and not owner.has_child:
                yield self._send(state, owner, "append with a child", owner.start_child(run_id))
        if owner.appends == 0:
            yield self._send(state, owner, "release", ReleaseClaim(run_id=run_id, token=owner.token))
        for kind, end in owner.ends(run_id):
            yield self._send(state, owner, kind, end)

    def _keep(self, state: State, owner: Owner) -> State:
        """The claim is refreshed from now on."""
        name = self._name(f"refresh of {owner.claim_id}", RefreshClaim(run_id=self._states.run_id, token=owner.token))
        return replace(state, sent=state.sent | {name})

    def _send(self, state: State, owner: Owner, kind: str, operation: Operation[Any]) -> tuple[str, State]:
        at = f" at {owner.position}" if isinstance(operation, AppendCheckpoint | ReleaseClaim) else ""
        name = self._name(f"{kind} of {owner.claim_id}{at}", operation)
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
            case Claimed():
                heard = owner.claimed(answer)
                state = self._keep(state, heard)
            case Appended() | Overtaken():
                heard = owner.appended(answer)
            case InboxMoved():
                heard = owner.refused(answer)
            case _:
                yield "its segment ends", _with(state, owner, Owner(owner.name, owner.claims))
                return
        yield from self._goes_on(_with(state, owner, heard), heard)


def _with(state: State, old: Owner, new: Owner) -> State:
    return replace(state, owners=tuple(new if owner is old else owner for owner in state.owners))


def _way(came_from: dict[State, tuple[State, str] | None], state: State) -> str:
    steps: list[str] = []
    while (step := came_from[state]) is not None:
        state, what = step
        steps.append(what)
    return "\n".join(f"{number:3}  {what}" for number, what in enumerate(reversed(steps), 1))
