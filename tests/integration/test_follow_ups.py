"""Whoever watches a run is told of its end, exactly once, whatever happens meanwhile; the request that ended it does not do that."""

from collections.abc import Callable

import pytest

from aiki_push.adapters.storage import keys
from aiki_push.adapters.storage.table import Always, Delete, Item, Put, Table
from aiki_push.domain.inbox import Message, RunEnding
from aiki_push.domain.run_states import Cancelled, Completed, Failed, Queued, SelfCause
from aiki_push.domain.values import MAX_INLINE_BYTES, Inline, PayloadReference, RunId, TimestampMs
from aiki_push.ports.api.checkpoints import Complete, SegmentEnd
from aiki_push.ports.api.controls import CancelRun
from aiki_push.ports.api.runs import GetPayload
from aiki_push.ports.wakeups import Hint
from aiki_push.testing import FAKE_NOW, CountingTable, Counts, FakeClock
from tests.contracts.engines import table_of
from tests.integration.owners import FINISH, claim
from tests.integration.waiting_runs import BOOM, FAIL, FIRST_CHILD, end, inbox, parent_of, parents
from tests.local_system import NAMESPACE, LocalSystem

CHILD = FIRST_CHILD


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def system(table: Table, clock: FakeClock) -> LocalSystem:
    return LocalSystem(table, clock=clock)


def ending(state: Completed | Failed | Cancelled, **told: object) -> RunEnding:
    return RunEnding.model_validate({"state": state, **told})


def told(what: RunEnding, at: TimestampMs = FAKE_NOW) -> Message:
    return Message(seq=1, at=at, kind="child", key=CHILD, ending=what)


DONE = told(ending(Completed(), output=Inline(value="done")))


def is_followed_up(system: LocalSystem) -> bool:
    """Nothing is left to do for CHILD, and nobody left to be told."""
    run = system.run(CHILD)
    return (run.duties, run.due_at, system.store.watchers(NAMESPACE, CHILD, limit=1)) == ((), None, ())


def test_the_request_that_ends_a_run_tells_nobody_and_leaves_that_to_a_hint_that_is_due_at_once(system: LocalSystem) -> None:
    (parent,) = parents(system, 1)
    system.wakeups.hints.clear()
    end(system, CHILD)
    assert inbox(system, parent) == ()
    assert (system.run(CHILD).duties, system.run(CHILD).due_at) == (("tell_watchers",), FAKE_NOW)
    hint = Hint(namespace=NAMESPACE, run_id=CHILD, due_at=FAKE_NOW)
    assert hint in system.wakeups.hints
    system.attention.handle(hint)
    assert inbox(system, parent) == (DONE,)
    assert system.run(parent).state == Queued(reason="child_workflow")
    assert is_followed_up(system)


@pytest.mark.parametrize(
    ("how", "expected"),
    [
        (FINISH, ending(Completed(), output=Inline(value="done"))),
        (FAIL, ending(Failed(cause=SelfCause()), error=BOOM)),
        (Complete(output=Inline(value="x" * 3_000)), ending(Completed(), output=Inline(value="x" * 3_000))),
    ],
    ids=["completed", "failed", "completed with a sealed tail"],
)
def test_a_watcher_is_told_how_the_run_ended(system: LocalSystem, how: SegmentEnd, expected: RunEnding) -> None:
    (parent,) = parents(system, 1)
    end(system, CHILD, how)
    system.attention.advance(NAMESPACE, CHILD)
    assert inbox(system, parent) == (told(expected),)


def test_a_watcher_is_told_of_a_cancellation_and_why(system: LocalSystem) -> None:
    (parent,) = parents(system, 1)
    system.server.call(NAMESPACE, CancelRun(run_id=CHILD, operation_id="cancel-1", explanation="no longer wanted"))
    system.attention.advance(NAMESPACE, CHILD)
    assert inbox(system, parent) == (told(ending(Cancelled(), explanation="no longer wanted")),)
    assert is_followed_up(system)


def test_a_large_output_is_copied_to_whoever_is_told_so_that_each_run_can_be_deleted_by_itself(system: LocalSystem) -> None:
    text = "x" * MAX_INLINE_BYTES
    both = parents(system, 2)
    end(system, CHILD, Complete(output=Inline(value=text)))
    system.attention.advance(NAMESPACE, CHILD)
    for parent in both:
        (message,) = inbox(system, parent)
        assert message.ending is not None
        assert isinstance(message.ending.output, PayloadReference)
        assert message.ending.output.run_id == parent
        payload = GetPayload(run_id=parent, sha256=message.ending.output.sha256)
        assert system.server.call(NAMESPACE, payload).value == text


@pytest.mark.parametrize(("engine", "number"), [("memory", 100), ("dynamodb", 30)])
def test_watchers_of_several_pages_are_all_told_once(request: pytest.FixtureRequest, engine: str, number: int) -> None:
    system = LocalSystem(table_of(engine, request), clock=FakeClock())
    everybody = parents(system, number)
    end(system, CHILD)
    system.attention.advance(NAMESPACE, CHILD)
    system.attention.advance(NAMESPACE, CHILD)
    assert [inbox(system, parent) for parent in everybody] == [(DONE,)] * number
    assert {system.run(parent).state.status for parent in everybody} == {"queued"}
    assert is_followed_up(system)


def test_telling_one_watcher_is_one_transaction(table: Table, clock: FakeClock) -> None:
    counting = CountingTable(table)
    system = LocalSystem(counting, clock=clock)
    parents(system, 1)
    end(system, CHILD)
    counting.reset()
    system.attention.advance(NAMESPACE, CHILD)
    # Gets: the run, the watcher's, and the run again to settle it. Queries: the watchers, and that none are left.
    assert counting.counts == Counts(single_writes=1, transactions=1, items_written=4, write_units=7, gets=3, queries=2), (
        counting.counts
    )


def test_a_watcher_that_is_executed_finds_the_end_in_its_inbox_and_is_not_disturbed(system: LocalSystem) -> None:
    owner = parent_of(system, CHILD)
    before = system.run(owner.claimed.run.id)
    end(system, CHILD)
    system.attention.advance(NAMESPACE, CHILD)
    after = system.run(before.id)
    assert after == before.model_copy(update={"etag": after.etag, "inbox_seq": 1})
    assert inbox(system, before.id) == (DONE,)


def vanish(system: LocalSystem, run_id: RunId) -> None:
    system.table.write([Delete(keys.header(NAMESPACE, run_id))], token="vanish")


def cancel(system: LocalSystem, run_id: RunId) -> None:
    system.server.call(NAMESPACE, CancelRun(run_id=run_id, operation_id="cancel-1"))


@pytest.mark.parametrize("leave", [vanish, cancel])
def test_a_watcher_that_is_gone_or_has_ended_is_dropped_and_keeps_nobody_waiting(
    system: LocalSystem, leave: Callable[[LocalSystem, RunId], None]
) -> None:
    first, second, third = parents(system, 3)
    leave(system, second)
    end(system, CHILD)
    system.attention.advance(NAMESPACE, CHILD)
    assert [inbox(system, parent) for parent in (first, third)] == [(DONE,)] * 2
    assert system.store.inbox(NAMESPACE, second, after=0) == ()
    assert is_followed_up(system)


def damage(system: LocalSystem, run_id: RunId) -> Item:
    """Overwrite the header with what nobody can read; gives what was there."""
    key = keys.header(NAMESPACE, run_id)
    before = system.table.get(key)
    assert before is not None
    system.table.write([Put({**before, "etag": "damaged", "d": "{}"}, Always())], token="damage")
    return before


def test_watchers_that_cannot_be_read_keep_nobody_waiting_and_are_told_once_they_can(clock: FakeClock) -> None:
    system = LocalSystem(clock=clock)
    everybody = parents(system, 60)
    stuck = sorted(everybody)[:30]  # more than one page, and in front of all others
    headers = [damage(system, parent) for parent in stuck]
    end(system, CHILD)
    assert system.attention.advance_safely(NAMESPACE, CHILD)
    assert [inbox(system, parent) for parent in sorted(everybody)[30:]] == [(DONE,)] * 30
    run = system.run(CHILD)
    assert (run.duties, run.due_at, run.advance_errors) == (("tell_watchers",), FAKE_NOW + 1_000, 1)

    clock.advance(1_000)
    assert system.attention.advance_safely(NAMESPACE, CHILD)
    assert system.run(CHILD).due_at == FAKE_NOW + 3_000
    for header in headers:
        system.table.write([Put(header, Always())], token="mend")
    clock.advance(2_000)
    system.attention.advance(NAMESPACE, CHILD)
    later = DONE.model_copy(update={"at": clock.now()})
    assert [inbox(system, parent) for parent in stuck] == [(later,)] * 30
    assert is_followed_up(system)


def test_a_run_that_nobody_watches_leaves_nothing_to_do(system: LocalSystem) -> None:
    owner = parent_of(system, CHILD)
    owner.send(owner.checkpoint(end=FINISH))
    run = system.run(owner.claimed.run.id)
    assert (run.duties, run.due_at) == ((), None)
    assert claim(system, CHILD).run.id == CHILD
