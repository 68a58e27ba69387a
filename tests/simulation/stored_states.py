"""The server as a function of what is stored and of a request: what is stored then, and the answer."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal, NamedTuple, TypeAlias

from aiki_push.adapters.storage import formats, keys
from aiki_push.adapters.storage.memory.table import MemoryTable
from aiki_push.adapters.storage.store import SingleTableStore
from aiki_push.adapters.storage.table import Always, Item, Put, Query, rows
from aiki_push.domain.errors import ApiError
from aiki_push.domain.limits import Limits
from aiki_push.domain.log_records import LogSlot
from aiki_push.domain.run import Run
from aiki_push.ports.api.operation import Operation
from aiki_push.ports.api.runs import StartRun
from aiki_push.server.attention.advance import Attention
from aiki_push.server.attention.recover import recover
from aiki_push.server.service import Server
from aiki_push.testing import FakeClock, FaultyTable, LocalSystem, RecordingPublisher
from tests.simulation.rules import faults_between, faults_of
from tests.simulation.schedule import Violation
from tests.simulation.servers import NAMESPACE, StoreFactory
from tests.simulation.stored import Stored

Move: TypeAlias = Operation[Any] | Literal["recover", "wake"]
"""A request, or what a server does by itself: take the run from its owner, who may well be alive; wake it where it is parked."""


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

    def partition(self, pk: str) -> tuple[Item, ...]:
        """The items of one partition."""
        return tuple(rows(self._table, Query(pk, low="", high="\U0010ffff")))


class StoredStates:
    """All that was ever stored of one run, by number; 0 is the new run. What a move makes of it is computed and checked once.

    Claims are stale at once, so recovery can happen at any time.
    """

    def __init__(self, store: StoreFactory = SingleTableStore) -> None:
        self._table = ReplaceableTable(MemoryTable())
        clock = FakeClock()
        system = LocalSystem(self._table, clock=clock, limits=Limits(claim_idle_timeout_ms=0, max_recoveries=1_000))
        self._context = replace(system.context, store=store(self._table, clock, system.entropy))
        self._server = Server(self._context)
        self._attention = Attention(self._context, RecordingPublisher())
        self._items: list[tuple[Item, ...]] = []
        self._numbers: dict[tuple[object, ...], int] = {}
        self._results: dict[tuple[int, Move, Overtaking | None], Result] = {}
        self.stored: list[Stored] = []
        self.run_id = self._server.call(NAMESPACE, StartRun(workflow="w", version="1")).id
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
        before, accesses, overtaker_answer = self.stored[number], 0, None

        def access(_: object) -> None:
            nonlocal accesses, overtaker_answer
            accesses += 1
            if overtaking and accesses == overtaking.access:
                overtaker_answer = self._perform(overtaking.move)

        def check(_: object) -> None:
            nonlocal before
            after = self._stored()
            if faults := [*faults_of(after), *faults_between(before, after)]:
                raise Violation("; ".join(faults))
            before = after

        self._table.hold(self._items[number])
        self._table.before_read = self._table.before_write = access
        self._table.after_write = check
        answer = self._perform(move)
        return Result(self._number(), answer, overtaker_answer)

    def _perform(self, move: Move) -> object:
        try:
            match move:
                case "recover":
                    recover(self._context, self._context.store.load(NAMESPACE, self.run_id))
                case "wake":
                    self._attention.advance(NAMESPACE, self.run_id)
                case operation:
                    return self._server.call(NAMESPACE, operation)
        except ApiError as error:
            return error
        return "done"

    def _stored(self) -> Stored:
        models = [formats.read(item) for item in self._table.partition(keys.run_partition(NAMESPACE, self.run_id))]
        run = next(model for model in models if isinstance(model, Run))
        return Stored(run, tuple(model for model in models if isinstance(model, LogSlot)))

    def _number(self) -> int:
        """The number of what is stored now. Etags, which are random, make no difference."""
        items = self._table.partition(keys.run_partition(NAMESPACE, self.run_id))
        key = tuple((item["SK"], item["d"]) for item in items)
        if key not in self._numbers:
            self._numbers[key] = len(self._items)
            self._items.append(items)
            self.stored.append(self._stored())
        return self._numbers[key]
