"""Pausing, resuming, cancelling and waking runs from outside, through the API."""

from collections.abc import Callable
from typing import Any

import pytest

from aiki_push.adapters.storage.table import Table
from aiki_push.domain.errors import IllegalTransition, NotFound, RevisionConflict, StorageUnavailable
from aiki_push.domain.inbox import Message
from aiki_push.domain.limits import Limits
from aiki_push.domain.run_states import Cancelled, Paused, Queued, Scheduled, Sleeping, Stalled
from aiki_push.domain.values import DurationMs, TimestampMs
from aiki_push.ports.api.checkpoints import Ended, HandBack, Yield
from aiki_push.ports.api.claims import GetInbox, RefreshClaim, ReleaseClaim
from aiki_push.ports.api.controls import PauseRun
from aiki_push.ports.api.operation import Operation
from aiki_push.ports.api.runs import RunView, StartOptions, StartRun
from aiki_push.server.controls import cancel_run
from aiki_push.testing import FAKE_NOW, CountingTable, FakeClock, FaultyTable
from tests.integration.controls import asleep, call, cancel, nap, owned, pause, resume, transitions, wake_up
from tests.integration.owners import FINISH, PARK, Owner, claim, completed, start, started
from tests.local_system import NAMESPACE, LocalSystem

LATER = TimestampMs(FAKE_NOW + 60_000)


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def counting(table: Table) -> CountingTable:
    return CountingTable(table)


@pytest.fixture
def system(counting: CountingTable, clock: FakeClock) -> LocalSystem:
    return LocalSystem(counting, clock=clock, limits=Limits(claim_idle_timeout_ms=90_000, max_recoveries=3))


ZOMBIES: dict[str, Callable[[Owner], Operation[Any]]] = {
    "append": lambda owner: owner.checkpoint(completed("a")),
    "park": lambda owner: owner.checkpoint(completed("a"), end=PARK),
    "finish": lambda owner: owner.checkpoint(completed("a"), end=FINISH),
    "yield": lambda owner: owner.checkpoint(completed("a"), end=Yield()),
    "hand back": lambda owner: owner.checkpoint(completed("a"), end=HandBack()),
    "refresh": lambda owner: RefreshClaim(run_id=owner.claimed.run.id, token=owner.token),
    "release": lambda owner: ReleaseClaim(run_id=owner.claimed.run.id, token=owner.token),
    "repeated append": lambda owner: owner.sent[-1],
}


@pytest.mark.parametrize("what", ZOMBIES)
@pytest.mark.parametrize("control", [pause, cancel])
@pytest.mark.parametrize("appends", [0, 1, 3])
def test_whoever_owned_the_run_can_do_nothing_more(
    system: LocalSystem, what: str, control: Callable[[LocalSystem, str], RunView], appends: int
) -> None:
    if what == "repeated append" and not appends:
        return
    owner = owned(system)
    run_id = owner.claimed.run.id
    for number in range(appends):
        owner.append(started(f"task-{number}"))
    zombie = ZOMBIES[what](owner)
    view = control(system, run_id)
    run, records = system.run(run_id), system.records(run_id)

    with pytest.raises(RevisionConflict):
        call(system, zombie)

    assert view.state == run.state == (Paused() if control is pause else Cancelled())
    assert (view.revision, view.directive, view.claim) == (2, None, None)
    assert (system.run(run_id), system.records(run_id)) == (run, records)
    assert [record.type for record in records[3:]] == [*(["task_started"] * appends), "transition"]


def test_a_run_paused_while_running_goes_on_under_a_new_claim(system: LocalSystem) -> None:
    owner = owned(system)
    owner.append(started("a"))
    pause(system, owner.claimed.run.id)
    assert resume(system, owner.claimed.run.id).state == Queued(reason="resumption")

    again = Owner(system, claim(system, owner.claimed.run.id, "claim-2"))
    assert again.send(again.checkpoint(started("a"), completed("a"), end=FINISH)) == Ended(status="completed", revision=5)
    assert transitions(system, owner.claimed.run.id) == ["queued", "running", "paused", "queued", "running", "completed"]


@pytest.mark.parametrize("sealed", [False, True], ids=["in the tail", "in a slot"])
def test_a_cancelled_run_says_why_and_is_due_for_its_follow_up(system: LocalSystem, sealed: bool) -> None:
    explanation = "é" * (1_000 if sealed else 10)
    run_id = start(system)
    view = cancel(system, run_id, explanation=explanation)
    assert (view.state, view.explanation, view.due_at) == (Cancelled(), explanation, FAKE_NOW)
    assert system.run(run_id).duties == ("cancel_children",)
    assert system.wakeups.hints[-1].due_at == FAKE_NOW


CONTROLS: dict[str, Callable[[LocalSystem, str, str], RunView]] = {
    "pause": pause,
    "resume": resume,
    "cancel": cancel,
    "wakeup": wake_up,
}
SINGLE, FENCED = (1, 0, 1), (0, 1, 2)
"""Single writes, transactions, items."""


def paused(system: LocalSystem) -> str:
    return pause(system, start(system)).id


@pytest.mark.parametrize(
    ("operation", "prepare", "cost"),
    [
        ("pause", start, SINGLE),
        ("pause", lambda system: asleep(system, LATER), SINGLE),
        ("pause", lambda system: owned(system).claimed.run.id, FENCED),
        ("resume", paused, SINGLE),
        ("cancel", start, SINGLE),
        ("cancel", paused, SINGLE),
        ("cancel", lambda system: owned(system).claimed.run.id, FENCED),
        ("wakeup", lambda system: asleep(system, LATER), FENCED),
        ("wakeup", start, FENCED),
    ],
)
def test_an_operation_is_one_commit_and_its_repetition_none(
    system: LocalSystem,
    counting: CountingTable,
    operation: str,
    prepare: Callable[[LocalSystem], str],
    cost: tuple[int, int, int],
) -> None:
    run_id, control = prepare(system), CONTROLS[operation]
    counting.reset()
    first = control(system, run_id, "op-1")
    counts = counting.reset()
    assert (counts.single_writes, counts.transactions, counts.items_written) == cost

    assert control(system, run_id, "op-1") == first
    counts = counting.reset()
    assert (counts.single_writes, counts.transactions, counts.items_written) == (0, 0, 0)


@pytest.mark.parametrize("operation", CONTROLS)
@pytest.mark.parametrize("is_running", [False, True], ids=["parked", "running"])
def test_an_operation_whose_answer_was_lost_is_done_once(table: Table, operation: str, is_running: bool) -> None:
    faulty = FaultyTable(table)
    system = LocalSystem(faulty, clock=FakeClock())
    run_id = owned(system).claimed.run.id if is_running else asleep(system, LATER)
    if operation == "resume":
        pause(system, run_id)
    before = system.run(run_id)

    def fail(_: object) -> None:
        raise StorageUnavailable("the answer was lost")

    def lose(_: object) -> None:
        faulty.before_write = fail
        raise StorageUnavailable("the answer was lost")

    faulty.after_write = lose
    with pytest.raises(StorageUnavailable):
        CONTROLS[operation](system, run_id, "op-1")
    faulty.before_write = faulty.after_write = lambda _: None
    after = system.run(run_id)
    assert after.operations == (*before.operations, "op-1")

    CONTROLS[operation](system, run_id, "op-1")
    assert system.run(run_id) == after


def test_a_delayed_start_keeps_its_time_through_a_pause(system: LocalSystem, clock: FakeClock) -> None:
    delayed = StartRun(workflow="w", version="1", options=StartOptions(delay_ms=DurationMs(60_000)))
    run_id = call(system, delayed).id
    pause(system, run_id)
    clock.advance(59_999)
    view = resume(system, run_id)
    assert (view.state, view.due_at) == (Scheduled(scheduled_at=LATER), LATER)

    pause(system, run_id)
    clock.advance(5_001)
    assert resume(system, run_id).state == Queued(reason="new")
    assert (system.run(run_id).ready_at, system.run(run_id).due_at) == (LATER, FAKE_NOW + 65_000)
    assert transitions(system, run_id) == ["scheduled", "paused", "scheduled", "paused", "queued"]


def test_a_paused_run_needs_nothing_however_late_it_gets(system: LocalSystem, clock: FakeClock) -> None:
    run_id = asleep(system, LATER)
    pause(system, run_id)
    clock.advance(10**9)
    system.attention.advance(NAMESPACE, run_id)
    assert system.run(run_id).state == Paused()
    assert system.store.due_runs(until=TimestampMs(10**15), limit=10) == ()


def test_a_parked_run_without_news_is_parked_again_and_woken_at_its_time(system: LocalSystem, clock: FakeClock) -> None:
    run_id = asleep(system, LATER)
    parked = system.run(run_id)
    pause(system, run_id)
    assert resume(system, run_id).state == Sleeping(wakeup_at=LATER)
    assert (system.run(run_id).waits, system.run(run_id).due_at) == (parked.waits, LATER)
    clock.set(LATER)
    system.attention.advance(NAMESPACE, run_id)
    assert system.run(run_id).state == Queued(reason="wakeup")


def test_a_parked_run_whose_deadline_passed_meanwhile_is_queued_by_the_resumption(system: LocalSystem, clock: FakeClock) -> None:
    run_id = asleep(system, LATER)
    pause(system, run_id)
    clock.set(LATER)
    assert resume(system, run_id).state == Queued(reason="resumption")


def test_a_message_reaches_a_paused_run_without_waking_it_and_queues_it_when_it_is_resumed(system: LocalSystem) -> None:
    run_id = asleep(system, LATER)
    pause(system, run_id)
    assert wake_up(system, run_id, sleep="nap").state == Paused()
    assert resume(system, run_id).state == Queued(reason="resumption")
    message = Message(seq=1, at=FAKE_NOW, kind="wakeup", key="nap")
    assert claim(system, run_id, "claim-2").messages == (message,)


def test_a_wake_up_ends_the_sleep_that_a_parked_run_is_in_and_no_other(system: LocalSystem) -> None:
    run_id = asleep(system, LATER)
    with pytest.raises(IllegalTransition, match="in no `run.sleep` named rest"):
        wake_up(system, run_id, sleep="rest")
    assert wake_up(system, run_id, sleep="nap").state == Queued(reason="wakeup_early")


def test_nothing_can_be_asked_of_a_run_that_does_not_exist(system: LocalSystem) -> None:
    nobody = "01J8ZQ4T9VX6E4Y2M3N5P7R8SA"
    for control in CONTROLS.values():
        with pytest.raises(NotFound):
            control(system, nobody, "op-1")
    with pytest.raises(NotFound):
        system.server.call("another", PauseRun(run_id=start(system), operation_id="op-1"))


def test_a_run_is_cancelled_on_behalf_of_another_once(system: LocalSystem) -> None:
    run_id = owned(system).claimed.run.id
    for _ in range(2):
        cancel_run(system.context, NAMESPACE, run_id, "op-1", "its parent was cancelled")
    assert (system.run(run_id).state, system.run(run_id).revision) == (Cancelled(), 2)
    with pytest.raises(IllegalTransition):
        cancel_run(system.context, NAMESPACE, run_id, "op-2", None)


def test_the_inbox_is_read_only_where_there_is_news(system: LocalSystem, counting: CountingTable) -> None:
    run_id = owned(system).claimed.run.id
    counting.reset()
    assert call(system, GetInbox(run_id=run_id, after=0)).messages == ()
    assert (counting.counts.gets, counting.counts.queries) == (1, 0)

    wake_up(system, run_id)
    assert [message.seq for message in call(system, GetInbox(run_id=run_id, after=0)).messages] == [1]
    assert call(system, GetInbox(run_id=run_id, after=1)).messages == ()


def test_a_yield_queues_the_run_until_it_is_given_up_too_often_without_progress(system: LocalSystem) -> None:
    run_id = start(system)
    for number in range(3):
        owner = Owner(system, claim(system, run_id, f"claim-{number}"))
        answer = owner.send(owner.checkpoint(end=Yield(explanation="charge takes 20 min, and 15 are left")))
        assert answer == Ended(status="queued" if number < 2 else "stalled", revision=2 * number + 2)
    assert system.run(run_id).state == Stalled(reason="crash_loop")
    (*_, last) = system.records(run_id)
    assert "the last, executor of claim-2: charge takes 20 min, and 15 are left" in str(last)


def test_a_yield_with_progress_is_never_too_often(system: LocalSystem) -> None:
    run_id = start(system)
    for number in range(10):
        owner = Owner(system, claim(system, run_id, f"claim-{number}"))
        assert owner.send(owner.checkpoint(started("a"), end=Yield())) == Ended(status="queued", revision=2 * number + 2)
    assert system.run(run_id).recoveries == 0


def test_a_park_remembers_what_was_seen_and_how_many_children_it_waits_for(system: LocalSystem) -> None:
    run_id = asleep(system, LATER)
    wake_up(system, run_id)
    owner = Owner(system, claim(system, run_id, "claim-2"))
    park = nap(LATER)
    children = tuple(park.waits[0].model_copy(update={"kind": "child", "key": f"child-{number}"}) for number in range(30))
    owner.send(owner.checkpoint(end=park.model_copy(update={"waits": (*park.waits, *children), "seen_seq": 1})))
    run = system.run(run_id)
    assert (run.seen_seq, run.open_child_waits, len(run.waits)) == (1, 30, 2)
