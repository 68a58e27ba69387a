"""Whatever reaches a run while it parks is seen before the park or wakes it after: never lost, never there twice."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import TypeAlias

import pytest

from aiki_push.adapters.storage.memory.table import MemoryTable
from aiki_push.adapters.storage.table import Table
from aiki_push.domain.errors import RevisionConflict
from aiki_push.domain.inbox import MessageKind
from aiki_push.domain.messages import wants_any
from aiki_push.domain.run_states import PARKED
from aiki_push.domain.values import TimestampMs
from aiki_push.ports.api.checkpoints import CheckpointAnswer, Ended, InboxMoved, Park
from aiki_push.ports.api.controls import WakeUpRun
from aiki_push.ports.api.events import SendEvent
from aiki_push.testing import FakeClock, FaultyTable
from tests.integration.interruptions import Hook, leave_alone, lose, meet, nth
from tests.integration.owners import claim, completed, started
from tests.integration.waiting_runs import end, numbered, parent_of, wait
from tests.local_system import NAMESPACE, LocalSystem

DEADLINE_MS = 5
LONG = started("x" * 3_000)
"""A record that does not fit into the tail, so that the park is a transaction with a slot."""


@dataclass
class Scene:
    """A run about to park on an event, two children that have ended, a sleep and a deadline, and all that may reach it meanwhile."""

    table: Table
    clock: FakeClock = field(default_factory=FakeClock)
    sent: list[tuple[MessageKind, str]] = field(default_factory=list)
    heard: int = 0

    def __post_init__(self) -> None:
        self.faulty = FaultyTable(self.table)
        self.system = LocalSystem(self.faulty, clock=self.clock)
        self.other = LocalSystem(self.table, clock=self.clock)
        self.owner = parent_of(self.system, numbered(1), numbered(2))
        self.run_id = self.owner.claimed.run.id
        for child in (numbered(1), numbered(2)):
            end(self.other, child)
        self.waits = [
            wait("event", "paid"),
            wait("child", numbered(1)),
            wait("child", numbered(2)),
            wait("sleep", "pause", TimestampMs(self.clock.now() + 60_000)),
            wait("timer", "timer|0", TimestampMs(self.clock.now() + DEADLINE_MS)),
        ]

    def event(self) -> None:
        self.sent.append(("event", "paid"))
        self.other.server.call(NAMESPACE, SendEvent(run_id=self.run_id, event="paid"))

    def repeated_event(self) -> None:
        if ("event", "refunded") not in self.sent:
            self.sent.append(("event", "refunded"))
        self.other.server.call(NAMESPACE, SendEvent(run_id=self.run_id, event="refunded", reference="refund 1"))

    def end_of_child(self, number: int = 1) -> None:
        if ("child", numbered(number)) not in self.sent:
            self.sent.append(("child", numbered(number)))
        self.other.attention.advance(NAMESPACE, numbered(number))

    def end_of_other_child(self) -> None:
        self.end_of_child(2)

    def early_wake(self) -> None:
        if ("wakeup", "pause") not in self.sent:
            self.sent.append(("wakeup", "pause"))
        self.other.server.call(NAMESPACE, WakeUpRun(run_id=self.run_id, operation_id="wake-1", sleep="pause"))

    def deadline(self) -> None:
        self.clock.advance(DEADLINE_MS)
        self.other.attention.advance(NAMESPACE, self.run_id)

    def park(self, *records: object) -> CheckpointAnswer | None:
        """Park on what is still waited for, as an executor would; None where the run is no longer its own."""
        request = self.owner.checkpoint(end=Park(waits=tuple(self.waits), seen_seq=self.heard))
        try:
            return self.owner.send(request.model_copy(update={"records": records}))
        except RevisionConflict:
            return None

    def park_for_good(self, *records: object) -> CheckpointAnswer | None:
        """Park, and where news came first, take it and park again."""
        answer = self.park(*records)
        while isinstance(answer, InboxMoved):
            self.hear(answer)
            answer = self.park(*records)
        return answer

    def hear(self, moved: InboxMoved) -> None:
        assert [message.seq for message in moved.messages] == list(range(self.heard + 1, self.heard + 1 + len(moved.messages)))
        self.heard += len(moved.messages)
        taken = {message.key for message in moved.messages}
        self.waits = [one for one in self.waits if one.key not in taken] or [wait("event", "never")]

    def check(self) -> None:
        """Every message is there once, and the run has heard of all it waits for, or is or will be woken for it."""
        run = self.other.run(self.run_id)
        messages = self.other.store.inbox(NAMESPACE, self.run_id, after=0)
        assert sorted((message.kind, message.key) for message in messages) == sorted(self.sent)
        assert [message.seq for message in messages] == list(range(1, run.inbox_seq + 1))
        if run.state.status in PARKED:
            unheard = [message for message in messages[run.seen_seq :] if wants_any(run, message.kind, message.key)]
            assert {message.kind for message in unheard} <= {"child"}
            assert not unheard or (run.due_at is not None and run.due_at <= self.clock.now() + 20)
        self.clock.advance(1_000)  # all windows end, and the deadline has passed
        self.other.attention.advance(NAMESPACE, self.run_id)
        run = self.other.run(self.run_id)
        if run.state.status in PARKED:
            assert not any(wants_any(run, message.kind, message.key) for message in messages[run.seen_seq :])
            assert not any(one.deadline_at is not None and one.deadline_at <= self.clock.now() for one in run.waits)
        else:
            assert run.state.status == "queued"
            assert claim(self.other, self.run_id, "next").messages == messages


Happening: TypeAlias = Callable[[Scene], None]

MESSAGES: tuple[Happening, ...] = (Scene.event, Scene.repeated_event, Scene.end_of_child, Scene.early_wake)
HAPPENINGS: tuple[Happening, ...] = (*MESSAGES, Scene.event, Scene.end_of_other_child, Scene.deadline)


def doing(happening: Happening, scene: Scene) -> Hook:
    return lambda _: happening(scene)


def prepared(table: Table, *, appends: int) -> Scene:
    scene = Scene(table)
    for number in range(appends):
        scene.owner.append(started(f"task-{number}"))
    return scene


@pytest.mark.parametrize("records", [(), (LONG,)], ids=["into the tail", "into a slot"])
@pytest.mark.parametrize("happening", MESSAGES)
def test_what_arrives_between_the_reading_and_the_writing_of_a_park_refuses_it(
    table: Table, happening: Happening, records: Sequence[object]
) -> None:
    scene = prepared(table, appends=1)
    scene.faulty.before_write = nth(1, doing(happening, scene))
    answer = scene.park(*records)
    assert isinstance(answer, InboxMoved)
    assert [(message.kind, message.key) for message in answer.messages] == scene.sent
    run = scene.other.run(scene.run_id)
    assert (run.state.status, run.inbox_seq) == ("running", 1)
    assert scene.other.records(scene.run_id)[-1] == started("task-0")  # of the park, nothing was written
    scene.hear(answer)
    assert isinstance(scene.park_for_good(*records), Ended)
    scene.check()


@pytest.mark.parametrize("place", [1, 2, 3])
@pytest.mark.parametrize("happening", MESSAGES)
def test_what_arrives_before_a_write_of_an_executor_is_met_by_its_park(table: Table, happening: Happening, place: int) -> None:
    scene = prepared(table, appends=0)
    scene.faulty.before_write = nth(place, doing(happening, scene))
    scene.owner.append(started("a"))
    scene.owner.append(completed("a"))
    answer = scene.park()
    assert isinstance(answer, InboxMoved)
    assert [(message.kind, message.key) for message in answer.messages] == scene.sent
    scene.hear(answer)
    assert isinstance(scene.park_for_good(), Ended)
    scene.check()


@pytest.mark.parametrize(
    ("happening", "status"),
    [(Scene.event, "queued"), (Scene.early_wake, "queued"), (Scene.deadline, "queued"), (Scene.end_of_child, "sleeping")],
)
def test_what_arrives_right_after_a_park_wakes_the_run_at_once_or_at_the_end_of_a_window(
    table: Table, happening: Happening, status: str
) -> None:
    scene = prepared(table, appends=1)
    scene.faulty.after_write = nth(1, doing(happening, scene))
    assert not isinstance(scene.park(), InboxMoved)  # it is answered that the run moved on, where it was woken
    assert scene.other.run(scene.run_id).state.status == status
    scene.check()


@pytest.mark.parametrize("happening", MESSAGES)
def test_what_arrives_after_a_park_whose_answer_is_lost_wakes_the_run_all_the_same(table: Table, happening: Happening) -> None:
    scene = prepared(table, appends=1)

    def arrive_and_lose(found: object) -> None:
        happening(scene)
        lose(found)

    scene.faulty.after_write = nth(1, arrive_and_lose)
    assert not isinstance(scene.park(), InboxMoved)
    scene.check()


@pytest.mark.parametrize("first", [Scene.event, Scene.deadline])
@pytest.mark.parametrize("place", [1, 2])
def test_an_event_and_a_deadline_at_one_instant_wake_the_run_once(table: Table, first: Happening, place: int) -> None:
    second = Scene.deadline if first is Scene.event else Scene.event
    scene = prepared(table, appends=1)
    assert isinstance(scene.park(), Ended)
    faulty = FaultyTable(table)
    rival = LocalSystem(faulty, clock=scene.clock)
    scene.clock.advance(DEADLINE_MS)
    meet(faulty, nth(place, doing(first, scene)))
    scene.other, before = rival, scene.other
    second(scene)
    scene.other = before
    leave_alone(faulty)
    run = scene.other.run(scene.run_id)
    assert (run.state.status, run.revision, run.inbox_seq) == ("queued", 3, 1)
    scene.check()


@pytest.mark.timeout(180)
@pytest.mark.parametrize("batch", range(10))
def test_of_a_thousand_parks_that_are_interrupted_at_random_none_loses_anything(batch: int) -> None:
    kinds: set[str] = set()
    for seed in range(batch * 100, batch * 100 + 100):
        random = Random(seed)
        scene = prepared(MemoryTable(), appends=random.randrange(3))
        interrupt(scene, random)
        answer = scene.park_for_good(*random.choice([(), (), (LONG,)]))
        leave_alone(scene.faulty)
        kinds.add(f"{type(answer).__name__} {scene.other.run(scene.run_id).state.status} {scene.heard > 0}")
        try:
            scene.check()
        except AssertionError as fault:
            raise AssertionError(f"seed {seed}: {fault}") from fault
    assert len(kinds) > 3, kinds  # refused, woken, sleeping and overtaken parks were all among them


def interrupt(scene: Scene, random: Random) -> None:
    """Let up to four things happen, each before or after any of the first accesses of the table."""
    happenings = [random.choice(HAPPENINGS) for _ in range(random.randint(1, 4))]
    places = [random.choice([("before", random.randint(1, 4)), ("after", 1)]) for _ in happenings]
    loses_at = random.choice([None, None, 1])
    before, after = 0, 0

    def come(side: str, number: int) -> None:
        for happening, place in zip(happenings, places, strict=True):
            if place == (side, number):
                happening(scene)

    def before_access(_: object) -> None:
        nonlocal before
        before += 1
        come("before", before)

    def after_write(found: object) -> None:
        nonlocal after
        after += 1
        come("after", after)
        if after == loses_at:
            lose(found)

    meet(scene.faulty, before_access)
    scene.faulty.after_write = after_write
