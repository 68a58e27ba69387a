"""Calls on other runs where servers die, answers are lost, and owners no longer are: all of a checkpoint or nothing, and once."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from aiki_push.adapters.storage.table import Table
from aiki_push.domain.errors import NotFound, RevisionConflict, StorageUnavailable
from aiki_push.domain.log_records import CallEnded
from aiki_push.domain.values import RunId
from aiki_push.ports.api.calls import Call
from aiki_push.ports.api.checkpoints import AppendCheckpoint, Ended, HandBack, Overtaken
from aiki_push.ports.api.runs import StartReference, StartRun
from aiki_push.testing import CountingTable, FakeClock, FaultyTable
from tests.integration.checkpoint_calls import calling, child, control, ended, event, results, sent
from tests.integration.controls import asleep, call, cancel, owned, pause, resume
from tests.integration.crashes import recover
from tests.integration.interruptions import Hook, Killed, kill, leave_alone, lose, nth
from tests.integration.owners import Owner, claim, completed, started
from tests.integration.waiting_runs import FAR, end, inbox, numbered, parked_on, run_in, wait
from tests.local_system import NAMESPACE, LocalSystem


@dataclass
class Scene:
    """An owner, runs for it to make calls on, and a table that fails when told to."""

    faulty: FaultyTable
    counting: CountingTable
    system: LocalSystem
    clock: FakeClock
    owner: Owner
    calls: tuple[Call, ...]
    expected: tuple[CallEnded, ...]

    @property
    def run_ids(self) -> set[RunId]:
        """Every run that has to do with it, whether it exists or not."""
        return {self.owner.claimed.run.id, *(one.run_id for one in self.calls), *(outcome.run_id for outcome in self.expected)}

    def stored(self) -> Any:
        """All that is stored of these runs."""
        return {run_id: _stored(self.system, run_id) for run_id in self.run_ids}


def _stored(system: LocalSystem, run_id: RunId) -> Any:
    try:
        run = system.run(run_id)
    except NotFound:
        return None
    store = system.store
    return run, system.records(run_id), store.inbox(NAMESPACE, run_id, after=0), store.watchers(NAMESPACE, run_id, limit=10)


@pytest.fixture(params=[True, False], ids=["first append", "later append"])
def scene(table: Table, request: pytest.FixtureRequest) -> Scene:
    """Calls of every kind, two of which find runs by their references: one that goes on and one that has ended."""
    counting = CountingTable(table)
    faulty = FaultyTable(counting)
    clock = FakeClock()
    system = LocalSystem(faulty, clock=clock)
    going, over = (
        call(system, StartRun(workflow="w", version="1", input={"a": 1}, reference=StartReference(id=reference))).id
        for reference in ("order 1", "order 2")
    )
    end(system, over)
    waiting, queued = parked_on(system, wait("event", "paid")), run_in(system, "queued")
    owner = owned(system)
    if not request.param:
        owner.append(started("first"))
    calls: tuple[Call, ...] = (
        child(1),
        child(2, reference="order 3", input="x" * 40_000),
        child(3, reference="order 1"),
        child(4, reference="order 2"),
        event(waiting, data=5),
        event(owner.claimed.run.id),
        control("wakeup", asleep(system, FAR)),
        control("pause", queued),
        control("cancel", run_in(system, "running")),
    )
    made = ended(calls[0], "created"), ended(calls[1], "created")
    found = ended(calls[2], "existing", going), ended(calls[3], "existing", over)
    told = ended(calls[4], "delivered"), ended(calls[5], "delivered")
    controlled = tuple(ended(one, "done") for one in calls[6:])
    return Scene(faulty, counting, system, clock, owner, calls, (*made, *found, *told, *controlled))


def check_done_once(scene: Scene) -> None:
    """Each new child is there with one watcher, and each message once: both that the owner's run was to get, in order."""
    system, own = scene.system, scene.owner.claimed.run.id
    assert [system.run(run_id).parent for run_id in (numbered(1), numbered(2))] == [own, own]
    watched = [outcome.run_id for outcome in scene.expected[:4]]
    watchers = [[one.run_id for one in system.store.watchers(NAMESPACE, run_id, limit=10)] for run_id in watched]
    assert watchers == [[own], [own], [own], []]
    assert [message.kind for message in inbox(system, own)] == ["child", "event"]
    targets = [one.run_id for one in scene.calls[4:]]
    assert [len(inbox(system, target)) for target in targets] == [1, 2, 1, 0, 0]
    statuses = [system.run(target).state.status for target in targets]
    assert statuses == ["queued", "running", "queued", "paused", "cancelled"]
    outcomes = [record for record in system.records(own) if isinstance(record, CallEnded)]
    assert outcomes == list(scene.expected)


def of_commits(action: Hook) -> Hook:
    """`action` for the transactions among the writes; the others are of values that go to the payload store."""

    def hook(writes: Any) -> None:
        if len(writes) > 1:
            action(writes)

    return hook


def test_a_server_that_dies_before_the_commit_has_done_nothing_and_a_repetition_does_all(scene: Scene) -> None:
    request, before = calling(scene.owner, *scene.calls, records=(completed("a"),)), scene.stored()
    scene.faulty.before_write = of_commits(kill)
    with pytest.raises(Killed):
        scene.owner.send(request)
    leave_alone(scene.faulty)
    assert scene.stored() == before
    assert sent(scene.owner, request) == scene.expected
    check_done_once(scene)


def test_an_answer_that_the_table_lost_is_found_again(scene: Scene) -> None:
    scene.faulty.after_write = of_commits(nth(1, lose))
    scene.counting.reset()
    assert sent(scene.owner, calling(scene.owner, *scene.calls)) == scene.expected
    assert scene.counting.reset().transactions == 2
    check_done_once(scene)


def lose_the_answer(scene: Scene) -> AppendCheckpoint:
    """A request that is carried out, and whose sender hears nothing of it; gives it back."""
    request = calling(scene.owner, *scene.calls, records=(started("a"),))

    def lose_all(writes: object) -> None:
        scene.faulty.before_write = lose
        lose(writes)

    scene.faulty.after_write = of_commits(lose_all)
    with pytest.raises(StorageUnavailable):
        scene.owner.send(request)
    leave_alone(scene.faulty)
    check_done_once(scene)
    return request


def test_a_repetition_has_the_same_outcomes_and_changes_nothing(scene: Scene) -> None:
    request = lose_the_answer(scene)
    after = scene.stored()
    for _ in range(2):
        assert sent(scene.owner, request) == scene.expected
    assert scene.stored() == after


def test_a_repetition_has_the_same_outcomes_whatever_became_of_the_other_runs(scene: Scene) -> None:
    request = lose_the_answer(scene)
    end(scene.system, numbered(1))
    cancel(scene.system, numbered(2))
    waiting, _, sleeping, moving, _ = (one.run_id for one in scene.calls[4:])
    end(scene.system, waiting)
    resume(scene.system, moving)
    cancel(scene.system, sleeping)
    after = scene.stored()
    assert sent(scene.owner, request) == scene.expected
    assert scene.stored() == after


def test_a_hand_back_that_finds_the_checkpoint_answers_its_outcomes(scene: Scene) -> None:
    request = lose_the_answer(scene)
    after = scene.stored()
    answer = scene.owner.send(scene.owner.checkpoint(end=HandBack()))
    assert isinstance(answer, Overtaken)
    assert (answer.ended, answer.position) == (scene.expected, request.position + 1)
    assert scene.stored() == after


def test_a_checkpoint_that_comes_after_the_hand_back_does_nothing(scene: Scene) -> None:
    late = calling(scene.owner, *scene.calls)
    assert isinstance(scene.owner.send(scene.owner.checkpoint(end=HandBack())), Ended)
    after = scene.stored()
    with pytest.raises(RevisionConflict):
        scene.owner.send(late)
    assert scene.stored() == after


def recover_run(scene: Scene) -> None:
    recover(scene.system, scene.clock, scene.owner.claimed.run.id)


def claim_anew(scene: Scene) -> None:
    recover_run(scene)
    claim(scene.system, scene.owner.claimed.run.id, "claim-2")


def pause_run(scene: Scene) -> None:
    pause(scene.system, scene.owner.claimed.run.id)


def cancel_run(scene: Scene) -> None:
    cancel(scene.system, scene.owner.claimed.run.id)


@pytest.mark.parametrize("is_repeated", [False, True], ids=["new", "repeated"])
@pytest.mark.parametrize("take", [recover_run, claim_anew, pause_run, cancel_run])
def test_whoever_owned_the_run_creates_no_child_and_tells_nobody_anything(
    scene: Scene, take: Callable[[Scene], None], is_repeated: bool
) -> None:
    zombie = lose_the_answer(scene) if is_repeated else calling(scene.owner, *scene.calls)
    take(scene)
    after = scene.stored()
    with pytest.raises(RevisionConflict):
        scene.owner.send(zombie)
    assert scene.stored() == after


def test_whoever_owned_the_run_controls_no_other(scene: Scene) -> None:
    """Calls for which nothing of the run itself is read: the slot alone keeps them away."""
    zombie = calling(scene.owner, *(one for one in scene.calls if one.kind in ("pause", "cancel", "wakeup")))
    recover_run(scene)
    after = scene.stored()
    with pytest.raises(RevisionConflict):
        scene.owner.send(zombie)
    assert scene.stored() == after


def test_outcomes_stay_in_the_order_of_the_calls(scene: Scene) -> None:
    backwards = calling(scene.owner, *reversed(scene.calls))
    assert results(sent(scene.owner, backwards)) == [str(outcome.result) for outcome in reversed(scene.expected)]
