"""The server as a function of what is stored and of a request: what is stored then, and the answer."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, NamedTuple, TypeAlias

from aiki_push.adapters.storage.memory.table import MemoryTable
from aiki_push.adapters.storage.table import Always, Item, Put, Query, Write, rows
from aiki_push.domain.controls import decide_directive
from aiki_push.domain.errors import ApiError
from aiki_push.domain.limits import Limits
from aiki_push.domain.run import Directive
from aiki_push.domain.values import RunId, TimestampMs
from aiki_push.ports.api.operation import Operation
from aiki_push.ports.api.runs import StartRun
from aiki_push.server.attention.advance import Attention
from aiki_push.server.attention.follow_up import follow_up
from aiki_push.server.attention.recover import recover
from aiki_push.testing import FAKE_NOW, FakeClock, FaultyTable, LocalSystem, RecordingPublisher
from tests.simulation.commit_rules import faults_in
from tests.simulation.commits import Commit
from tests.simulation.schedule import Violation
from tests.simulation.servers import NAMESPACE, SOUND, Parts
from tests.simulation.stored import Stored

CHILD = RunId("7CHD0000000000000000000000")
"""The run that `StartChild` may create."""

LONG_MS = 7_200_000
"""After so long every deadline has passed, and no run has waited too long to be taken."""

Move: TypeAlias = (
    Operation[Any] | Literal["recover", "wake", "follow up", "follow up the child", "direct to pause", "direct to cancel"]
)
"""A request, or what a server does by itself: take the run from its owner, who may well be alive; wake it where it is parked; do
what follows its end, or the child's; tell its owner what to do, as after too many lost races.
"""

Runs: TypeAlias = Mapping[RunId, Stored]


class Overtaking(NamedTuple):
    """Another move, made by another server process just before the first one's `access`th access to the table."""

    move: Move
    access: int


class Result(NamedTuple):
    """The number of what is stored afterwards, and the answers, an ApiError perhaps, of the move and of what overtook it."""

    number: int
    answer: object
    overtaker_answer: object


class ReplaceableTable(FaultyTable):
    """A table whose whole content can be taken and replaced."""

    def hold(self, items: Sequence[Item]) -> None:
        """Contain `items` and nothing else."""
        self._table = MemoryTable()
        for item in items:
            self._table.write([Put(item, Always())], token="-")

    def partitions(self, pks: Sequence[str]) -> tuple[Item, ...]:
        """The items of these partitions."""
        return tuple(item for pk in pks for item in rows(self._table, Query(pk, low="", high="\U0010ffff")))


class StoredStates:
    """All that was ever stored of one run and of a child of it, by number; 0 is the new run.

    What a move makes of it is computed and checked once. Claims are stale at once, so recovery can happen at any time.
    """

    def __init__(self, parts: Parts = SOUND) -> None:
        self._table = ReplaceableTable(MemoryTable())
        self._clock = FakeClock()
        system = LocalSystem(
            self._table, clock=self._clock, limits=Limits(claim_idle_timeout_ms=0, max_recoveries=1_000), store=parts.store
        )
        self._context = replace(system.context, store=parts.store(self._table, self._clock, system.entropy))
        self._server = parts.server(self._context)
        self._attention = Attention(self._context, RecordingPublisher())
        self._items: list[tuple[Item, ...]] = []
        self._numbers: dict[tuple[object, ...], int] = {}
        self._results: dict[tuple[int, Move, Overtaking | None], Result] = {}
        self._pks: tuple[str, ...] = ()
        self._now: Runs = {}
        self.stored: list[Runs] = []
        self._table.after_write = self._observe
        self.run_id = self._server.call(NAMESPACE, StartRun(workflow="w", version="1")).id
        self._pks = tuple(f"{kind}#{NAMESPACE}#{run_id}" for kind in ("RUN", "EVENTREF") for run_id in (self.run_id, CHILD))
        self._number()

    @property
    def moves_made(self) -> int:
        """How many different moves were computed."""
        return len(self._results)

    def apply(self, number: int, move: Move, overtaking: Overtaking | None = None) -> Result:
        """Make `move` on what has this number. Raises Violation where a commit breaks an invariant.

        The overtaker's answer is None where the move ends before that access, and where nothing overtakes it.
        """
        key = (number, move, overtaking)
        if key not in self._results:
            self._results[key] = self._make(number, move, overtaking)
        return self._results[key]

    def _make(self, number: int, move: Move, overtaking: Overtaking | None) -> Result:
        accesses, overtaker_answer = 0, None

        def access(_: object) -> None:
            nonlocal accesses, overtaker_answer
            accesses += 1
            if overtaking and accesses == overtaking.access:
                overtaker_answer = self._perform(overtaking.move)

        self._clock.set(FAKE_NOW)
        self._table.hold(self._items[number])
        self._now = self.stored[number]
        self._table.before_read = self._table.before_write = access
        answer = self._perform(move)
        return Result(self._number(), answer, overtaker_answer)

    def _observe(self, writes: Sequence[Write]) -> None:
        commit = Commit.of(writes, self._now)
        self._now = {**self._now, **{run_id: change.after for run_id, change in commit.changes.items()}}
        if faults := list(faults_in(commit, self._now)):
            raise Violation("; ".join(f"{'the child' if run_id == CHILD else 'the run'}: {fault}" for run_id, fault in faults))

    def _perform(self, move: Move) -> object:
        store = self._context.store
        try:
            match move:
                case "recover":
                    recover(self._context, store.load(NAMESPACE, self.run_id))
                case "wake":
                    self._wake()
                case "follow up" | "follow up the child":
                    ended = store.load(NAMESPACE, self.run_id if move == "follow up" else CHILD)
                    if ended.duties:
                        follow_up(self._context, ended)
                case "direct to pause":
                    self._direct(Directive(action="pause", operation_id="direct-pause"))
                case "direct to cancel":
                    self._direct(Directive(action="cancel", operation_id="direct-cancel"))
                case operation:
                    return self._server.call(NAMESPACE, operation)
        except ApiError as error:
            return error
        return "done"

    def _wake(self) -> None:
        """At a time of its own, so that nothing else depends on how often runs were woken."""
        self._clock.set(TimestampMs(FAKE_NOW + LONG_MS))
        self._attention.advance(NAMESPACE, self.run_id)
        self._clock.set(FAKE_NOW)

    def _direct(self, directive: Directive) -> None:
        self._context.change(
            NAMESPACE, self.run_id, lambda run: decide_directive(run, directive) if run.claim is not None else ()
        )

    def _number(self) -> int:
        """The number of what is stored now. Etags, which are random, make no difference."""
        items = self._table.partitions(self._pks)
        key = tuple((item["PK"], item["SK"], item["d"]) for item in items)
        if key not in self._numbers:
            self._numbers[key] = len(self._items)
            self._items.append(items)
            self.stored.append(self._now)
        return self._numbers[key]
