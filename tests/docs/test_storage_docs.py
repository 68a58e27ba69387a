"""`docs/storage.md` says what each write costs. Here each is made, on a table that counts."""

import re
from collections.abc import Callable, Iterator
from functools import partial

from aiki_push.adapters.storage.memory.table import MemoryTable
from aiki_push.domain.log_records import RecordedError
from aiki_push.domain.run_states import SelfCause
from aiki_push.domain.values import RunId
from aiki_push.domain.waits import Wait
from aiki_push.ports.api.claims import ClaimRuns, Fail, HandBack, Park, RefreshClaim, ReleaseClaim, SegmentEnd, Stall
from aiki_push.ports.api.endpoints import DeleteEndpoint, PutEndpoint, WorkflowVersionField
from aiki_push.ports.api.runs import RequeueRun, StartReference, StartRun
from aiki_push.testing import FAKE_NOW, CountingTable, Counts, FakeClock
from tests.architecture.source_files import ROOT
from tests.integration.owners import FINISH, Owner, claim, completed, start, started
from tests.local_system import NAMESPACE, LocalSystem

PAGE = (ROOT / "docs/storage.md").read_text("utf-8")

FIVE_KB = "".join(f"{number * 2654435761 % 2**32:08x}" for number in range(640))
"""Text that hardly compresses."""

PARK = Park(waits=(Wait(kind="timer", key="timer|0", ordinal=1, deadline_at=FAKE_NOW),), seen_seq=0)
FAIL = Fail(cause=SelfCause(), error=RecordedError(name="OutOfStock", message="mug"))
STALL = Stall(reason="diverged", explanation="the code calls b, and the log has a")
ENDPOINT = PutEndpoint(
    endpoint_id="e", url="http://127.0.0.1:8801/", workflows=(WorkflowVersionField(name="hello", version="1.0.0"),)
)


class Accounts:
    """A server whose writes are counted."""

    def __init__(self) -> None:
        self.counting = CountingTable(MemoryTable())
        self.clock = FakeClock()
        self.system = LocalSystem(self.counting, clock=self.clock)

    def cost(self, write: Callable[[], object]) -> str:
        """What `write` took, as the page puts it: requests, then write units."""
        self.counting.reset()
        write()
        counts = self.counting.reset()
        return f"{_requests(counts)} | {counts.write_units}"

    def started(self, text: str) -> None:
        self.system.server.call(NAMESPACE, StartRun(workflow="w", version="1", input=text))

    def owner(self) -> Owner:
        """Someone who has claimed a new run."""
        return Owner(self.system, claim(self.system, start(self.system)))

    def working_owner(self) -> Owner:
        """Someone who has also begun a task."""
        owner = self.owner()
        owner.append(started("t1"))
        return owner

    def advanced(self, run_id: RunId, after_ms: int = 0) -> None:
        """The run has been given what it needs, after some time."""
        self.clock.advance(after_ms)
        self.system.attention.advance(NAMESPACE, run_id)


def _requests(counts: Counts) -> str:
    if counts.transactions:
        assert (counts.transactions, counts.single_writes) == (1, 0)
        return f"one transaction of {counts.items_written} items"
    return {0: "no write", 1: "one write", 2: "two writes"}[counts.single_writes]


def _cost_of_an_offer() -> str:
    """Of a server with one queued run: an offer takes the others of the queue along."""
    accounts = Accounts()
    queued = start(accounts.system)
    return accounts.cost(lambda: accounts.advanced(queued))


def costs() -> Iterator[tuple[str, str]]:
    """Every row of the page's table, as it should be."""
    accounts = Accounts()
    system = accounts.system
    yield "start", accounts.cost(lambda: start(system))
    yield "start with an input of 5 KB", accounts.cost(lambda: accounts.started(FIVE_KB))
    referred = StartRun(workflow="w", version="1", reference=StartReference(id="order 7"))
    yield "start with a reference", accounts.cost(lambda: system.server.call(NAMESPACE, referred))
    yield "the same start again", accounts.cost(lambda: system.server.call(NAMESPACE, referred))
    yield "offer", _cost_of_an_offer()
    queued = start(system)
    yield "claim", accounts.cost(lambda: claim(system, queued))
    pull = ClaimRuns(request_id="r", executor="e", workflows=(WorkflowVersionField(name="w", version="1"),))
    yield "claim by pull", accounts.cost(lambda: system.server.call(NAMESPACE, pull))
    owner = accounts.owner()
    yield "first step of a segment", accounts.cost(lambda: owner.append(started("t1")))
    yield "next step", accounts.cost(lambda: owner.append(completed("t1"), started("t2")))
    refresh = RefreshClaim(run_id=owner.claimed.run.id, token=owner.token)
    yield "refresh of a claim", accounts.cost(lambda: system.server.call(NAMESPACE, refresh))
    yield "park", accounts.cost(lambda: owner.send(owner.checkpoint(completed("t2"), end=PARK)))
    yield "wake-up", accounts.cost(lambda: accounts.advanced(owner.claimed.run.id))
    ends: dict[str, SegmentEnd] = {"finish": FINISH, "failure": FAIL, "stall": STALL}
    for name, end in ends.items():
        owner = accounts.working_owner()
        last = owner.checkpoint(completed("t1"), end=end)
        yield name, accounts.cost(partial(owner.send, last))
    requeue = RequeueRun(run_id=owner.claimed.run.id, operation_id="again")
    yield "requeue", accounts.cost(lambda: system.server.call(NAMESPACE, requeue))
    owner = accounts.owner()
    release = ReleaseClaim(run_id=owner.claimed.run.id, token=owner.token)
    yield "release", accounts.cost(lambda: system.server.call(NAMESPACE, release))
    owner = accounts.working_owner()
    yield "recovery", accounts.cost(lambda: accounts.advanced(owner.claimed.run.id, after_ms=90_000))
    owner = accounts.working_owner()
    yield "hand-back", accounts.cost(lambda: owner.send(owner.checkpoint(completed("t1"), end=HandBack())))
    yield "registration of an endpoint", accounts.cost(lambda: system.server.call(NAMESPACE, ENDPOINT))
    yield "its removal", accounts.cost(lambda: system.server.call(NAMESPACE, DeleteEndpoint(endpoint_id="e")))


def test_each_write_costs_what_the_page_says() -> None:
    documented = re.findall(r"^\| (.+?) \| (.+? \| \d+) \|$", PAGE, re.M)
    assert documented == list(costs())
