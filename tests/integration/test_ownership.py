"""One owner at a time: what the server refuses, and what it recognises as a repetition."""

from typing import Any

import pytest

from aiki_push.adapters.storage.table import Table
from aiki_push.domain.errors import IllegalTransition, InvalidRequest, InvalidToken, RevisionConflict
from aiki_push.domain.limits import Limits
from aiki_push.domain.log_records import InputRecord, TaskCompleted, TaskStarted, Transition
from aiki_push.domain.run_states import Queued, Stalled
from aiki_push.domain.values import Inline, TimestampMs
from aiki_push.ports.api.checkpoints import Appended, Ended, HandBack, Overtaken
from aiki_push.ports.api.claims import ClaimRun, NotClaimed, RefreshClaim, ReleaseClaim
from aiki_push.ports.api.operation import Operation
from aiki_push.ports.api.runs import StartRun
from aiki_push.testing import FakeClock
from tests.integration.owners import FINISH, PARK, Owner, claim, completed, start, started
from tests.local_system import NAMESPACE, LocalSystem


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def system(table: Table, clock: FakeClock) -> LocalSystem:
    return LocalSystem(table, clock=clock, limits=Limits(claim_idle_timeout_ms=90_000))


def call(system: LocalSystem, operation: Operation[Any]) -> Any:
    return system.server.call(NAMESPACE, operation)


def recover(system: LocalSystem, clock: FakeClock, run_id: str) -> None:
    clock.advance(90_000)
    system.attention.advance(NAMESPACE, run_id)


def task_records(system: LocalSystem, run_id: str) -> list[str]:
    """`started x`, `completed x` in log order."""
    return [
        f"{record.type.removeprefix('task_')} {record.task_id}"
        for record in system.records(run_id)
        if isinstance(record, TaskStarted | TaskCompleted)
    ]


def test_a_checkpoint_of_somebody_who_never_claimed_is_refused(system: LocalSystem) -> None:
    run_id = start(system)
    owner = Owner(system, claim(system, run_id))
    forged = owner.checkpoint(started("a")).model_copy(update={"token": "e30.AAAA"})
    with pytest.raises(InvalidToken):
        call(system, forged)
    assert task_records(system, run_id) == []


def test_a_token_is_good_for_its_run_its_namespace_and_its_position_only(system: LocalSystem) -> None:
    run_id, other_id = start(system), start(system)
    owner = Owner(system, claim(system, run_id))
    claim(system, other_id)
    with pytest.raises(InvalidToken):
        call(system, owner.checkpoint(started("a")).model_copy(update={"run_id": other_id}))
    with pytest.raises(InvalidToken):
        system.server.call("another", owner.checkpoint(started("a")))
    with pytest.raises(InvalidToken):
        call(system, owner.checkpoint(started("a")).model_copy(update={"position": 1}))
    assert task_records(system, run_id) == task_records(system, other_id) == []


def test_a_used_token_writes_nothing_more(system: LocalSystem) -> None:
    run_id = start(system)
    owner = Owner(system, claim(system, run_id))
    first, second = owner.checkpoint(started("a")), owner.checkpoint(started("b"))
    owner.send(first)
    with pytest.raises(InvalidToken):
        call(system, second)
    assert task_records(system, run_id) == ["started a"]


@pytest.mark.parametrize(
    "record",
    [
        InputRecord(at=TimestampMs(1), value=Inline(value="forged"), hash="h"),
        Transition(at=TimestampMs(1), state=Queued(reason="new"), revision=7, attempts=1),
    ],
    ids=lambda record: record.type,
)
def test_an_executor_cannot_write_what_is_the_servers_to_write(system: LocalSystem, record: InputRecord | Transition) -> None:
    run_id = start(system)
    owner = Owner(system, claim(system, run_id))
    with pytest.raises(InvalidRequest) as refused:
        call(system, owner.checkpoint(started("a"), record))
    assert refused.value.fields["errors"] == [
        {"field": "records[1]", "message": f"{record.type} records are the server's to write"}
    ]
    assert task_records(system, run_id) == []


def test_an_append_after_ones_own_park_is_found_by_the_next_claim(system: LocalSystem, clock: FakeClock) -> None:
    run_id = start(system)
    owner = Owner(system, claim(system, run_id))
    owner.append(started("a"))
    late = owner.checkpoint(started("b"))
    assert owner.send(owner.checkpoint(completed("a"), end=PARK)) == Ended(status="sleeping", revision=2)
    call(system, late)
    clock.set(TimestampMs(10**15))
    system.attention.advance(NAMESPACE, run_id)
    assert system.run(run_id).state == Queued(reason="wakeup")
    answer = call(system, ClaimRun(run_id=run_id, claim_id="claim-2", executor="B"))
    assert answer == NotClaimed(reason="not_queued")
    assert system.run(run_id).state == Stalled(reason="corrupt_log")
    assert task_records(system, run_id) == ["started a", "started b", "completed a"]


def test_a_thawed_executor_whose_append_had_landed_before_it_lost_the_run_is_told_so(
    system: LocalSystem, clock: FakeClock
) -> None:
    run_id = start(system)
    owner = Owner(system, claim(system, run_id))
    append = owner.checkpoint(started("a"))
    owner.send(append)
    recover(system, clock, run_id)
    with pytest.raises(RevisionConflict):
        call(system, append)
    claim(system, run_id, "claim-2")
    with pytest.raises(RevisionConflict):
        call(system, append)
    assert task_records(system, run_id) == ["started a"]


def test_a_repeated_start_is_the_same_start(system: LocalSystem) -> None:
    request = StartRun(run_id=start(system), workflow="w", version="1", input={"a": 1})
    first = call(system, request)
    assert call(system, request) == first
    assert [record.type for record in system.records(first.id)] == ["input", "transition"]


def test_a_repeated_claim_is_the_same_claim_and_another_is_none(system: LocalSystem) -> None:
    run_id = start(system)
    first = claim(system, run_id)
    assert claim(system, run_id) == first
    assert system.run(run_id).revision == 1
    other = call(system, ClaimRun(run_id=run_id, claim_id="claim-2", executor="B"))
    assert other == NotClaimed(reason="already_claimed")


@pytest.mark.parametrize("appends_before", [0, 1, 2])
def test_a_repeated_append_is_one_append(system: LocalSystem, appends_before: int) -> None:
    run_id = start(system)
    owner = Owner(system, claim(system, run_id))
    for number in range(appends_before):
        owner.append(started(f"before-{number}"))
    append = owner.checkpoint(started("a"))
    first = call(system, append)
    assert isinstance(first, Appended)
    assert call(system, append) == first
    assert task_records(system, run_id).count("started a") == 1


@pytest.mark.parametrize("end", [FINISH, PARK], ids=["finish", "park"])
def test_a_repeated_end_is_one_end(system: LocalSystem, end: Any) -> None:
    run_id = start(system)
    owner = Owner(system, claim(system, run_id))
    owner.append(started("a"))
    ending = owner.checkpoint(completed("a"), end=end)
    first = owner.send(ending)
    assert call(system, ending) == first
    assert system.run(run_id).revision == 2
    assert task_records(system, run_id) == ["started a", "completed a"]


def test_a_hand_back_takes_the_slot_of_an_append_that_never_arrived(system: LocalSystem) -> None:
    run_id = start(system)
    owner = Owner(system, claim(system, run_id))
    owner.append(started("a"))
    given_up = owner.checkpoint(completed("a"), started("b"))
    assert owner.send(owner.checkpoint(completed("a"), end=HandBack())) == Ended(status="queued", revision=2)
    with pytest.raises(RevisionConflict):
        call(system, given_up)
    assert task_records(system, run_id) == ["started a", "completed a"]
    again = claim(system, run_id, "claim-2")
    assert [record.type for slot in again.slots for record in slot.records][-1] == "transition"


def test_a_hand_back_finds_an_append_that_had_arrived_and_the_segment_goes_on_after_it(system: LocalSystem) -> None:
    run_id = start(system)
    owner = Owner(system, claim(system, run_id))
    owner.append(started("a"))
    given_up = owner.checkpoint(completed("a"), started("b"))
    hand_back = owner.checkpoint(completed("a"), end=HandBack())
    call(system, given_up)
    answer = owner.send(hand_back)
    assert isinstance(answer, Overtaken)
    assert owner.append(completed("b"))
    assert task_records(system, run_id) == ["started a", "completed a", "started b", "completed b"]


def test_a_hand_back_starts_nothing(system: LocalSystem) -> None:
    run_id = start(system)
    owner = Owner(system, claim(system, run_id))
    with pytest.raises(InvalidRequest):
        call(system, owner.checkpoint(started("a"), end=HandBack()))
    assert system.run(run_id).state.status == "running"


def test_a_repeated_hand_back_is_one_hand_back(system: LocalSystem) -> None:
    run_id = start(system)
    owner = Owner(system, claim(system, run_id))
    hand_back = owner.checkpoint(end=HandBack())
    assert call(system, hand_back) == call(system, hand_back) == Ended(status="queued", revision=2)


def test_a_release_gives_back_only_what_was_not_begun(system: LocalSystem) -> None:
    run_id = start(system)
    unused = claim(system, run_id)
    call(system, ReleaseClaim(run_id=run_id, token=unused.token))
    assert system.run(run_id).state == Queued(reason="released")
    owner = Owner(system, claim(system, run_id, "claim-2"))
    owner.append(started("a"))
    with pytest.raises(IllegalTransition):
        call(system, ReleaseClaim(run_id=run_id, token=owner.token))
    with pytest.raises(RevisionConflict):
        call(system, ReleaseClaim(run_id=run_id, token=unused.token))


def test_a_refresh_keeps_the_claim_and_a_stale_one_is_refused(system: LocalSystem, clock: FakeClock) -> None:
    run_id = start(system)
    claimed = claim(system, run_id)
    clock.advance(60_000)
    call(system, RefreshClaim(run_id=run_id, token=claimed.token))
    clock.advance(60_000)
    system.attention.advance(NAMESPACE, run_id)
    assert system.run(run_id).state.status == "running"
    recover(system, clock, run_id)
    assert system.run(run_id).state == Queued(reason="recovery")
    with pytest.raises(RevisionConflict):
        call(system, RefreshClaim(run_id=run_id, token=claimed.token))


def test_an_owner_that_appends_is_alive_though_it_does_not_refresh(system: LocalSystem, clock: FakeClock) -> None:
    run_id = start(system)
    owner = Owner(system, claim(system, run_id))
    clock.advance(80_000)
    owner.append(started("a"))
    clock.advance(80_000)
    system.attention.advance(NAMESPACE, run_id)
    assert system.run(run_id).state.status == "running"
    clock.advance(10_000)
    system.attention.advance(NAMESPACE, run_id)
    assert system.run(run_id).state == Queued(reason="recovery")


def parked_with_a_late_append(system: LocalSystem, clock: FakeClock) -> tuple[Any, Owner]:
    """An append that its sender holds back until it has parked, the run has been woken and somebody else has claimed it."""
    run_id = start(system)
    first = Owner(system, claim(system, run_id))
    first.append(started("a"))
    late = first.checkpoint(started("late"))
    first.send(first.checkpoint(completed("a"), end=PARK))
    clock.set(TimestampMs(10**15))
    system.attention.advance(NAMESPACE, run_id)
    return late, Owner(system, claim(system, run_id, "claim-2"))


def test_a_stranger_in_the_log_of_a_running_run_stalls_it_at_its_owners_next_append(
    system: LocalSystem, clock: FakeClock
) -> None:
    late, second = parked_with_a_late_append(system, clock)
    call(system, late)
    with pytest.raises(RevisionConflict):
        second.append(started("b"))
    assert system.run(late.run_id).state == Stalled(reason="corrupt_log")
    assert task_records(system, late.run_id) == ["started a", "started late", "completed a"]


def test_a_stranger_in_the_log_of_an_abandoned_run_stalls_it_at_recovery(system: LocalSystem, clock: FakeClock) -> None:
    late, _ = parked_with_a_late_append(system, clock)
    call(system, late)
    recover(system, clock, late.run_id)
    assert system.run(late.run_id).state == Stalled(reason="corrupt_log")


def test_a_late_append_that_finds_its_slot_taken_is_refused(system: LocalSystem, clock: FakeClock) -> None:
    late, second = parked_with_a_late_append(system, clock)
    second.append(started("b"))
    with pytest.raises(RevisionConflict):
        call(system, late)
    assert task_records(system, late.run_id) == ["started a", "completed a", "started b"]
