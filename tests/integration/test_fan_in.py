"""A run that waits for many: how often it is woken, and how long it waits for the others."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import pytest

from aiki_push.adapters.storage.table import Table
from aiki_push.domain.run_states import Queued
from aiki_push.domain.values import RunId, TimestampMs
from aiki_push.ports.api.checkpoints import Ended, Park
from aiki_push.ports.api.controls import PauseRun, ResumeRun
from aiki_push.ports.wakeups import Hint
from aiki_push.server.attention.sweep import SweepPlan, sweep
from aiki_push.testing import FAKE_NOW, FakeClock
from tests.integration.owners import FINISH, Owner, claim
from tests.integration.waiting_runs import end, inbox, numbered, parent_of, start_children, wait
from tests.local_system import NAMESPACE, LocalSystem

HOUR_MS = 3_600_000


@dataclass
class Parent:
    """An honest executor of a run that waits for `open_children`, one segment after the other."""

    system: LocalSystem
    owner: Owner
    open_children: set[RunId]
    seen: int = 0
    woken_at: list[TimestampMs] = field(default_factory=list)

    @property
    def run_id(self) -> RunId:
        return self.owner.claimed.run.id

    def park(self) -> None:
        """Wait for the children that are left, or end."""
        waits = tuple(wait("child", child) for child in sorted(self.open_children))
        how = Park(waits=waits, seen_seq=self.seen) if waits else FINISH
        answer = self.owner.send(self.owner.checkpoint(end=how))
        assert isinstance(answer, Ended), answer

    def look(self) -> None:
        """Claim the run if it was woken, take what arrived, and park again."""
        if self.system.run(self.run_id).state.status != "queued":
            return
        claimed = claim(self.system, self.run_id, f"segment-{len(self.woken_at)}")
        self.woken_at.append(claimed.now)
        self.owner = Owner(self.system, claimed)
        for message in claimed.messages[self.seen :]:
            self.open_children.remove(RunId(message.key))
            self.seen = message.seq
        self.park()


def parent_with(system: LocalSystem, number: int) -> Parent:
    """A run parked on so many children of its own."""
    children = [numbered(one) for one in range(1, number + 1)]
    owner = parent_of(system, *children[:24])
    for first in range(24, number, 24):
        start_children(owner, *children[first : first + 24])
    parent = Parent(system, owner, set(children))
    parent.park()
    return parent


def play(clock: FakeClock, parent: Parent, ends: Mapping[RunId, int]) -> None:
    """Let each child end so long after FAKE_NOW, and handle every hint at its time, until the parent has ended."""
    hints, at_ms = parent.system.wakeups.hints, dict(ends)
    while parent.system.run(parent.run_id).state.status != "completed":
        child = min(at_ms, key=lambda one: at_ms[one], default=None)
        hint = min(hints, key=lambda one: one.due_at, default=None)
        if child is not None and (hint is None or FAKE_NOW + at_ms[child] < hint.due_at):
            clock.set(TimestampMs(FAKE_NOW + at_ms.pop(child)))
            end(parent.system, child)
        else:
            assert hint is not None, "nothing is left to happen"
            hints.remove(hint)
            clock.set(max(clock.now(), hint.due_at))
            parent.system.attention.handle(hint)
        parent.look()


def woken_after_ms(parent: Parent) -> list[int]:
    return [at - FAKE_NOW for at in parent.woken_at]


def test_a_group_of_two_that_end_an_hour_apart_wakes_for_each_within_twenty_milliseconds() -> None:
    clock = FakeClock()
    parent = parent_with(LocalSystem(clock=clock), 2)
    play(clock, parent, {numbered(1): 1_000, numbered(2): 1_000 + HOUR_MS})
    assert woken_after_ms(parent) == [1_020, 1_000 + HOUR_MS]


@pytest.mark.parametrize("apart_ms", [0, 19])
def test_a_group_of_two_that_end_nearly_at_once_wakes_once_when_the_second_has_ended(apart_ms: int) -> None:
    clock = FakeClock()
    parent = parent_with(LocalSystem(clock=clock), 2)
    play(clock, parent, {numbered(1): 1_000, numbered(2): 1_000 + apart_ms})
    assert woken_after_ms(parent) == [1_000 + apart_ms]


@pytest.mark.parametrize("ends_of", [lambda one: one * 20, lambda one: (one * 37) % 100 * 20, lambda one: one * one // 5])
def test_a_hundred_children_that_end_within_two_seconds_wake_ten_times_at_most_and_none_waits_longer_than_one(
    ends_of: Callable[[int], int],
) -> None:
    clock = FakeClock()
    system = LocalSystem(clock=clock)
    parent = parent_with(system, 100)
    ends = {numbered(one): ends_of(one) for one in range(1, 101)}
    play(clock, parent, ends)
    assert len(parent.woken_at) <= 10
    assert sorted(message.key for message in inbox(system, parent.run_id)) == sorted(ends)
    for message in inbox(system, parent.run_id):
        assert message.at == FAKE_NOW + ends[RunId(message.key)]
        assert min(at for at in parent.woken_at if at >= message.at) - message.at <= 1_000


def test_a_hundred_children_that_end_at_once_wake_once() -> None:
    clock = FakeClock()
    parent = parent_with(LocalSystem(clock=clock), 100)
    play(clock, parent, {numbered(one): 500 for one in range(1, 101)})
    assert woken_after_ms(parent) == [500]


def tell_first_of_three(table: Table | None, clock: FakeClock) -> tuple[LocalSystem, Parent]:
    """A run that waits for three children, one of which has ended and told it."""
    system = LocalSystem(table, clock=clock)
    parent = parent_with(system, 3)
    end(system, numbered(1))
    system.wakeups.hints.clear()
    system.attention.advance(NAMESPACE, numbered(1))
    return system, parent


def test_whoever_handles_the_hint_of_a_window_waits_for_its_end(table: Table) -> None:
    clock = FakeClock()
    system, parent = tell_first_of_three(table, clock)
    hint = Hint(namespace=NAMESPACE, run_id=parent.run_id, due_at=TimestampMs(FAKE_NOW + 30))
    assert system.wakeups.hints == [hint]
    system.attention.handle(hint)
    run = system.run(parent.run_id)
    assert (clock.slept_ms, run.state, run.ready_at) == (30, Queued(reason="child_workflow"), FAKE_NOW + 30)


def test_a_window_whose_hint_was_lost_is_found_by_the_sweep_and_the_run_goes_as_if_it_had_been_on_time(table: Table) -> None:
    clock = FakeClock()
    system, parent = tell_first_of_three(table, clock)
    clock.advance(5_031)
    assert sweep(system.context, system.attention, SweepPlan(lookahead_ms=0)).failed == 0
    run = system.run(parent.run_id)
    assert (run.state, run.ready_at) == (Queued(reason="child_workflow"), FAKE_NOW + 30)


def test_a_run_that_is_paused_within_a_window_goes_on_for_what_it_was_told(table: Table) -> None:
    clock = FakeClock()
    system, parent = tell_first_of_three(table, clock)
    system.server.call(NAMESPACE, PauseRun(run_id=parent.run_id, operation_id="pause-1"))
    clock.advance(30)
    system.attention.advance(NAMESPACE, parent.run_id)
    assert system.run(parent.run_id).state.status == "paused"
    system.server.call(NAMESPACE, ResumeRun(run_id=parent.run_id, operation_id="resume-1"))
    assert system.run(parent.run_id).state == Queued(reason="resumption")
