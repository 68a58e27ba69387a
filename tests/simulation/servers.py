"""The server: any number of processes at once on one table, each access of which may fail, take long, or be the last."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from aiki_push.adapters.storage.memory.table import MemoryTable
from aiki_push.adapters.storage.payloads import TablePayloadStore
from aiki_push.adapters.storage.store import SingleTableStore
from aiki_push.adapters.storage.table import Item, Page, Query, Table, Write
from aiki_push.domain.changes import Change
from aiki_push.domain.controls import decide_directive
from aiki_push.domain.errors import ApiError, IllegalTransition, StorageUnavailable
from aiki_push.domain.inbox import Message
from aiki_push.domain.limits import Limits
from aiki_push.domain.run import Directive, Run
from aiki_push.domain.values import DurationMs, TimestampMs
from aiki_push.ports.api.checkpoints import AppendCheckpoint
from aiki_push.ports.api.operation import Operation
from aiki_push.ports.clock import Clock
from aiki_push.ports.entropy import Entropy
from aiki_push.ports.publisher import Publisher
from aiki_push.ports.store import LogPage, RunContents, Store
from aiki_push.ports.wakeups import Hint, Wakeups
from aiki_push.server.attention.advance import Attention
from aiki_push.server.attention.recover import recover
from aiki_push.server.attention.sweep import SweepPlan, sweep
from aiki_push.server.context import ServerContext
from aiki_push.server.service import Server
from aiki_push.testing import FaultyTable, LocalSystem
from tests.simulation.faults import SECOND_US, Misfortune
from tests.simulation.fibers import Crashed, Fibers
from tests.simulation.schedule import Schedule, SeededEntropy, VirtualClock

NAMESPACE = "default"
SWEEP_INTERVAL_S = 60
SMALL_PAGE_BYTES = 1_500

StoreFactory: TypeAlias = Callable[[Table, Clock, Entropy], Store]


def label(operation: Operation[Any]) -> str:
    """What is asked for, in a few words."""
    run_id = getattr(operation, "run_id", None)
    words = [operation.operation] if run_id is None else [operation.operation, f"run {run_id}"]
    if isinstance(operation, AppendCheckpoint):
        words += [f"at {operation.position}"] if operation.end is None else [f"at {operation.position} to {operation.end.to}"]
    return " ".join(words)


class SmallPagesStore(SingleTableStore):
    """Gives logs and inboxes in small parts, so that executors have to ask for more."""

    def load_contents(self, namespace: str, run_id: str, *, max_bytes: int) -> RunContents:
        """See Store."""
        return super().load_contents(namespace, run_id, max_bytes=min(max_bytes, SMALL_PAGE_BYTES))

    def log(self, namespace: str, run_id: str, *, after: int, max_bytes: int) -> LogPage:
        """See Store."""
        return super().log(namespace, run_id, after=after, max_bytes=min(max_bytes, SMALL_PAGE_BYTES))

    def inbox(self, namespace: str, run_id: str, *, after: int, max_bytes: int | None = None) -> tuple[Message, ...]:
        """See Store."""
        return super().inbox(namespace, run_id, after=after, max_bytes=None if max_bytes is None else SMALL_PAGE_BYTES // 2)


@dataclass(frozen=True, slots=True)
class Parts:
    """What a server is made of; those of `tests.simulation.planted` have a fault."""

    store: StoreFactory = SingleTableStore
    server: Callable[[ServerContext], Server] = Server


SOUND = Parts()
SOUND_WITH_SMALL_PAGES = Parts(store=SmallPagesStore)


class ServerClock(VirtualClock):
    """The clock of a server process, which may sleep. Clocks of two processes differ a little."""

    def __init__(self, schedule: Schedule, fibers: Fibers) -> None:
        super().__init__(schedule)
        self._fibers = fibers

    def now(self) -> TimestampMs:
        """See Clock."""
        fiber = self._fibers.current
        return TimestampMs(super().now() + (fiber.skew_ms if fiber else 0))

    def sleep(self, duration_ms: DurationMs) -> None:
        """See Clock."""
        self._fibers.pause(duration_ms * 1_000, "sleeps")


class UnreliableTable(FaultyTable):
    """A table whose accesses take time, during which others have theirs; a query is not one look, but one a page."""

    def __init__(self, table: Table, fibers: Fibers, misfortune: Misfortune) -> None:
        super().__init__(table)
        self._fibers = fibers
        self._misfortune = misfortune
        self._shown: dict[tuple[str, str], Page] = {}
        self.before_read = lambda read: self._access("reads")
        self.before_write = lambda writes: self._access("writes")

    def write(self, writes: Sequence[Write], token: str) -> None:
        """See Table."""
        super().write(writes, token)
        self._access("has written")

    def query(self, query: Query, after: Item | None = None) -> Page:
        """See Table."""
        page = super().query(query, after)
        if query.index is not None:
            return self._perhaps_stale(query, page) if after is None else page
        length = self._misfortune.random.randint(1, 4)
        return page if len(page.items) <= length else Page(page.items[:length], is_last=False)

    def _perhaps_stale(self, query: Query, page: Page) -> Page:
        place = (str(query.index), query.pk)
        shown = self._shown.setdefault(place, page)
        if shown.is_last and self._misfortune.strikes(self._misfortune.faults.stale):
            return shown
        self._shown[place] = page
        return page

    def _access(self, what: str) -> None:
        fiber = self._fibers.current
        if fiber is None:
            return
        self._fibers.pause(self._misfortune.access_us() * fiber.slowness, what)
        if self._misfortune.strikes(self._misfortune.faults.crash):
            raise Crashed
        if self._misfortune.strikes(self._misfortune.faults.refuse):
            raise StorageUnavailable("the table is throttled")


class Servers:
    """All server processes. `observe` hears of every write that was committed, at once."""

    def __init__(
        self,
        schedule: Schedule,
        misfortune: Misfortune,
        *,
        observe: Callable[[Sequence[Write]], None],
        wakeups: Wakeups,
        publisher: Publisher,
        limits: Limits,
        parts: Parts,
        sweep_interval_s: int,
    ) -> None:
        self._schedule = schedule
        self._misfortune = misfortune
        self.sweep_interval_s = sweep_interval_s
        self._fibers = Fibers(schedule, misfortune.skew_ms)
        self.pause = self._fibers.pause
        self.crash_all = self._fibers.crash_all
        self.memory = MemoryTable()
        table = UnreliableTable(self.memory, self._fibers, misfortune)
        table.after_write = observe
        clock, entropy = ServerClock(schedule, self._fibers), SeededEntropy(schedule.random)
        self.context = replace(
            LocalSystem(table, clock=clock, limits=limits).context,
            store=parts.store(table, clock, entropy),
            payloads=TablePayloadStore(table, clock, entropy),
            entropy=entropy,
            wakeups=wakeups,
        )
        self.server = parts.server(self.context)
        self._attention = Attention(self.context, publisher)

    def request(self, operation: Operation[Any], on_answer: Callable[[object], None]) -> None:
        """Perform `operation` in a process; `on_answer` gets the answer or the ApiError, and nothing where the process died."""
        copied = type(operation).model_validate(operation.model_dump(include=operation.model_fields_set))

        def ended(outcome: object) -> None:
            if isinstance(outcome, BaseException) and not isinstance(outcome, ApiError | Crashed):
                self._schedule.report(f"{operation.operation} raised {outcome!r}")
            elif not isinstance(outcome, Crashed):
                on_answer(outcome)

        slowness = self._misfortune.slowness() if operation.role == "client" else 1
        self._fibers.spawn(label(operation), lambda: self.server.call(NAMESPACE, copied), ended, slowness)

    def hint(self, hint: Hint) -> None:
        """Handle `hint` in a process."""
        self._fibers.spawn(f"hint about run {hint.run_id}", lambda: self._attention.handle(hint), self._check)

    def rob(self, run: Run) -> None:
        """Recover `run` in a process, however lately its owner was heard of."""
        impatient = replace(self.context, limits=replace(self.context.limits, claim_idle_timeout_ms=0))
        self._fibers.spawn(f"recovery of run {run.id}, whose owner lives", lambda: recover(impatient, run), self._check)

    def direct(self, run: Run, directive: Directive) -> None:
        """Tell the owner of `run` what to do, in a process, as where the run could not be taken from it."""

        def decide(now: Run) -> tuple[Change, ...]:
            return decide_directive(now, directive) if now.claim is not None else ()

        def call() -> None:
            with suppress(IllegalTransition):
                self.context.change(run.namespace, run.id, decide)

        self._fibers.spawn(f"directive to {directive.action} run {run.id}", call, self._check)

    def sweep_for_ever(self) -> None:
        """Sweep now, and again and again."""
        self._fibers.spawn("sweep", lambda: sweep(self.context, self._attention, SweepPlan()), self._check)
        self._schedule.later(self.sweep_interval_s * SECOND_US, "the next sweep", self.sweep_for_ever)

    def _check(self, outcome: object) -> None:
        if isinstance(outcome, BaseException) and not isinstance(outcome, StorageUnavailable | Crashed):
            self._schedule.report(f"the server raised {outcome!r}")
