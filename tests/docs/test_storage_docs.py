"""`docs/storage.md` says what each write costs, and what is read for it. Here each is done, on a table that counts."""

import re
from collections.abc import Callable, Iterator, Mapping
from functools import partial

from aiki_push.domain.log_records import RecordedError
from aiki_push.domain.run_states import SelfCause
from aiki_push.domain.waits import Wait, WaitKind
from aiki_push.ports.api.calls import Call, ControlRun, SendEventTo
from aiki_push.ports.api.checkpoints import Fail, HandBack, Park, Retry, SegmentEnd, Stall, Yield
from aiki_push.ports.api.claims import ClaimRuns, GetInbox, RefreshClaim, ReleaseClaim
from aiki_push.ports.api.controls import RequeueRun
from aiki_push.ports.api.endpoints import DeleteEndpoint, PutEndpoint, WorkflowVersionField
from aiki_push.ports.api.events import SendEvent
from aiki_push.ports.api.runs import StartReference, StartRun
from aiki_push.testing import FAKE_NOW
from tests.architecture.source_files import ROOT
from tests.docs.accounts import Accounts
from tests.integration.controls import asleep, call, cancel, pause, resume, wake_up
from tests.integration.owners import FINISH, Owner, claim, completed, start, started
from tests.integration.waiting_runs import FAR, end, numbered, parents, parked_on, run_in, start_children, wait

PAGE = (ROOT / "docs/storage.md").read_text("utf-8")

FIVE_KB = "".join(f"{number * 2654435761 % 2**32:08x}" for number in range(640))
"""Text that hardly compresses."""

PARK = Park(waits=(Wait(kind="timer", key="timer|0", ordinal=1, deadline_at=FAKE_NOW),), seen_seq=0)
FAIL = Fail(cause=SelfCause(), error=RecordedError(name="OutOfStock", message="mug"))
RETRY = Retry(cause=FAIL.cause, error=FAIL.error, next_attempt_at=FAR)
STALL = Stall(reason="diverged", explanation="the code calls b, and the log has a")
ENDPOINT = PutEndpoint(
    endpoint_id="e", url="http://127.0.0.1:8801/", workflows=(WorkflowVersionField(name="hello", version="1.0.0"),)
)
REFERRED = StartRun(workflow="w", version="1", reference=StartReference(id="order 7"))

Rows = Iterator[tuple[str, str]]


def _cost_of_an_offer() -> str:
    """Of a server with one queued run: an offer takes the others of the queue along."""
    accounts = Accounts()
    queued = start(accounts.system)
    return accounts.cost(lambda: accounts.advanced(queued))


def costs_of_starts() -> Rows:
    accounts = Accounts()
    system = accounts.system
    yield "start", accounts.cost(lambda: start(system))
    large = StartRun(workflow="w", version="1", input=FIVE_KB)
    yield "start with an input of 5 KB", accounts.cost(lambda: call(system, large))
    yield "start with a reference", accounts.cost(lambda: call(system, REFERRED))
    yield "the same start again", accounts.cost(lambda: call(system, REFERRED))
    yield "offer", _cost_of_an_offer()
    queued = start(system)
    yield "claim", accounts.cost(lambda: claim(system, queued))
    pull = ClaimRuns(request_id="r", executor="e", workflows=(WorkflowVersionField(name="w", version="1"),))
    yield "claim by pull", accounts.cost(lambda: call(system, pull))


def costs_of_segments() -> Rows:
    accounts = Accounts()
    system = accounts.system
    owner = accounts.owner()
    yield "first step of a segment", accounts.cost(lambda: owner.append(started("t1")))
    yield "next step", accounts.cost(lambda: owner.append(completed("t1"), started("t2")))
    refresh = RefreshClaim(run_id=owner.claimed.run.id, token=owner.token)
    yield "refresh of a claim", accounts.cost(lambda: call(system, refresh))
    yield "park", accounts.cost(lambda: owner.send(owner.checkpoint(completed("t2"), end=PARK)))
    yield "wake-up", accounts.cost(lambda: accounts.advanced(owner.claimed.run.id))
    ends: Mapping[str, SegmentEnd] = {"finish": FINISH, "failure": FAIL, "retry": RETRY, "yield": Yield(), "stall": STALL}
    for name, how in ends.items():
        owner = accounts.working_owner()
        last = owner.checkpoint(completed("t1"), end=how)
        yield name, accounts.cost(partial(owner.send, last))
    requeue = RequeueRun(run_id=owner.claimed.run.id, operation_id="again")
    yield "requeue", accounts.cost(lambda: call(system, requeue))
    owner = accounts.owner()
    release = ReleaseClaim(run_id=owner.claimed.run.id, token=owner.token)
    yield "release", accounts.cost(lambda: call(system, release))
    owner = accounts.working_owner()
    yield "recovery", accounts.cost(lambda: accounts.advanced(owner.claimed.run.id, after_ms=90_000))
    owner = accounts.working_owner()
    yield "hand-back", accounts.cost(lambda: owner.send(owner.checkpoint(completed("t1"), end=HandBack())))
    yield "registration of an endpoint", accounts.cost(lambda: call(system, ENDPOINT))
    yield "its removal", accounts.cost(lambda: call(system, DeleteEndpoint(endpoint_id="e")))


def _cost_of_parks() -> str:
    """The same, whatever the run waits for."""
    accounts = Accounts()
    kinds: tuple[WaitKind, ...] = ("timer", "sleep", "event", "child", "task_retry")
    parks = [Park(waits=(wait(kind, "paid", FAR),), seen_seq=0) for kind in kinds]
    owners = [accounts.owner() for _ in parks]
    (cost,) = {accounts.cost(partial(owner.send, owner.checkpoint(end=park))) for owner, park in zip(owners, parks, strict=True)}
    return cost


def costs_of_messages() -> Rows:
    accounts = Accounts()
    system = accounts.system
    waiting = parked_on(system, wait("event", "paid"))
    paid = SendEvent(run_id=waiting, event="paid", data=5, reference="payment 1")
    yield "event", accounts.cost(lambda: call(system, paid))
    yield "the same event again", accounts.cost(lambda: call(system, paid))
    bare = SendEvent(run_id=waiting, event="paid", data=5)
    yield "event without a reference", accounts.cost(lambda: call(system, bare))
    ended = paid.model_copy(update={"run_id": run_in(system, "completed")})
    yield "event to a run that has ended", accounts.cost(lambda: call(system, ended))
    sleeper = asleep(system, FAR)
    yield "early wake", accounts.cost(lambda: wake_up(system, sleeper))


def costs_of_children() -> Rows:
    accounts = Accounts()
    system = accounts.system
    owner = accounts.working_owner()
    yield "start of a child", accounts.cost(lambda: start_children(owner, numbered(1)))
    yield "start of a child with a reference", accounts.cost(lambda: start_children(owner, numbered(2), reference="a"))
    other = accounts.working_owner()
    yield "start of 24 children", accounts.cost(lambda: start_children(other, *map(numbered, range(101, 125))))
    yield "link to a run that exists", accounts.cost(lambda: start_children(other, numbered(3), reference="a"))
    child = Owner(system, claim(system, numbered(1)))
    yield "finish of a child", accounts.cost(lambda: child.send(child.checkpoint(end=FINISH)))
    yield "telling its parent", accounts.cost(lambda: accounts.advanced(numbered(1)))
    end(system, numbered(2))
    third = accounts.working_owner()
    yield "link to a run that has ended", accounts.cost(lambda: start_children(third, numbered(4), reference="a"))


def costs_of_controls() -> Rows:
    accounts = Accounts()
    system = accounts.system
    for name, control in {"pause": pause, "cancel": cancel}.items():
        waiting, running = asleep(system, FAR), accounts.working_owner().claimed.run.id
        yield f"{name} of a run that waits", accounts.cost(partial(control, system, waiting))
        yield f"{name} of a run that is executed", accounts.cost(partial(control, system, running))
        if control is pause:
            yield "resume", accounts.cost(partial(resume, system, waiting))
    yield "what follows a cancel, without children", accounts.cost(partial(accounts.advanced, waiting))


def costs_of_calls() -> Rows:
    accounts = Accounts()
    system = accounts.system
    target = parked_on(system, wait("event", "paid"))
    event = SendEventTo(key="e", ordinal=0, run_id=target, event="paid", data=5, reference="r")
    control = ControlRun(key="c", ordinal=0, run_id=target, kind="pause", operation_id="o")
    calls: Mapping[str, Call] = {"event sent by a workflow": event, "control by a workflow": control}
    for name, asked in calls.items():
        owner = accounts.working_owner()
        request = owner.checkpoint().model_copy(update={"calls": (asked,)})
        yield name, accounts.cost(partial(owner.send, request))


def reads() -> Rows:
    accounts = Accounts()
    system = accounts.system
    queued = start(system)
    yield "offer", accounts.reads(lambda: accounts.advanced(queued))
    yield "claim", accounts.reads(lambda: claim(system, queued))
    owner = accounts.owner()
    run_id = owner.claimed.run.id
    yield "first step of a segment", accounts.reads(lambda: owner.append(started("t1")))
    yield "next step", accounts.reads(lambda: owner.append(completed("t1")))
    news = GetInbox(run_id=run_id, after=0)
    yield "question for news, without any", accounts.reads(lambda: call(system, news))
    yield "event", accounts.reads(lambda: call(system, SendEvent(run_id=run_id, event="paid", reference="r")))
    yield "question for news, with some", accounts.reads(lambda: call(system, news))
    yield "park, finish, failure, retry, yield, stall", accounts.reads(lambda: owner.send(owner.checkpoint(end=FINISH)))
    parents(system, 1)
    end(system, numbered(1))
    yield "telling one parent of the end of a child", accounts.reads(lambda: accounts.advanced(numbered(1)))


def documented(row: str) -> list[tuple[str, str]]:
    """The rows of the page's tables that look like this."""
    return re.findall(rf"^\| (.+?) \| ({row}) \|$", PAGE, re.M)


def test_each_write_costs_what_the_page_says() -> None:
    groups: tuple[Callable[[], Rows], ...] = (
        costs_of_starts,
        costs_of_segments,
        costs_of_messages,
        costs_of_children,
        costs_of_controls,
        costs_of_calls,
    )
    assert documented(r".+? \| \d+") == [row for group in groups for row in group()]


def test_a_park_costs_the_same_whatever_the_run_waits_for() -> None:
    assert ("park", _cost_of_parks()) in documented(r".+? \| \d+")


def test_as_much_is_read_as_the_page_says() -> None:
    assert documented(r"(?:nothing|\d+ (?:get|query).*?)") == list(reads())
