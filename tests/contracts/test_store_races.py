"""Two writers at once: one of them wins, every time."""

import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Literal

import pytest

from aiki_push.adapters.storage.store import SingleTableStore
from aiki_push.domain.changes import Change, CreateRun, DeleteWatcher, PutEventReference, PutMessage, PutSlot, PutWatcher, SaveRun
from aiki_push.domain.run import Offer
from aiki_push.ports.store import CommitRefused
from tests.contracts.stored_examples import child_ended, claimed, event, queued_run, run_id, task_slot, watcher

ROUNDS = 200
RUN = run_id(1)

Result = Literal["written", "refused"]


@pytest.fixture(autouse=True)
def _threads_alternate_often() -> Iterator[None]:
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(interval)


def attempt(store: SingleTableStore, changes: Sequence[Change]) -> Result:
    try:
        store.commit(*changes)
    except CommitRefused:
        return "refused"
    return "written"


def race(store: SingleTableStore, contenders: int, rounds: int, changes: Callable[[int, int], Sequence[Change]]) -> None:
    """Have `contenders` commit `changes(round, contender)` at once, `rounds` times; exactly one of each round is written.

    The barrier's action decides each round's changes while nobody writes.
    """
    commits: list[Sequence[Change]] = []
    turn = iter(range(rounds))

    def prepare() -> None:
        number = next(turn)
        commits[:] = [changes(number, contender) for contender in range(contenders)]

    barrier = Barrier(contenders, action=prepare, timeout=30)

    def contend(contender: int) -> list[Result]:
        results: list[Result] = []
        for _ in range(rounds):
            barrier.wait()
            results.append(attempt(store, commits[contender]))
        return results

    with ThreadPoolExecutor(contenders) as threads:
        results = list(threads.map(contend, range(contenders)))
    for number, outcome in enumerate(zip(*results, strict=True)):
        assert sorted(outcome) == ["refused"] * (contenders - 1) + ["written"], f"round {number}"


def test_two_saves_from_one_etag_have_one_winner(store: SingleTableStore) -> None:
    store.commit(CreateRun(queued_run()))

    def saves(number: int, contender: int) -> Sequence[Change]:
        loaded = store.load("default", RUN)
        return [SaveRun(loaded.model_copy(update={"offer": Offer(attempts=number, last_error=str(contender))}))]

    race(store, 2, ROUNDS, saves)
    assert store.load("default", RUN).offer.attempts == ROUNDS - 1


def test_two_appends_at_one_position_have_one_winner(store: SingleTableStore) -> None:
    race(store, 2, ROUNDS, lambda number, contender: [PutSlot("default", RUN, task_slot(number, output=contender))])
    assert store.last_slot("default", RUN) in (task_slot(ROUNDS - 1, output=0), task_slot(ROUNDS - 1, output=1))


def test_two_creations_of_one_run_have_one_winner(store: SingleTableStore) -> None:
    race(store, 2, ROUNDS, lambda number, contender: [CreateRun(queued_run(number, value=contender))])


def test_two_who_tell_one_watcher_have_one_winner(store: SingleTableStore) -> None:
    """Each would write a message of its own: what makes it one is the watcher that only one of them finds."""
    parent = run_id(2)

    def tell(number: int, contender: int) -> Sequence[Change]:
        if contender == 0:
            store.commit(PutWatcher("default", RUN, watcher(2)))
        (read,) = store.watchers("default", RUN, limit=1)
        message = PutMessage("default", parent, child_ended(2 * number + contender, RUN))
        return [message, DeleteWatcher("default", RUN, read)]

    race(store, 2, ROUNDS, tell)
    assert len(store.inbox("default", parent, after=-1)) == ROUNDS
    assert store.watchers("default", RUN, limit=1) == ()


def test_two_removals_of_one_watcher_have_one_winner(store: SingleTableStore) -> None:
    def remove(_: int, contender: int) -> Sequence[Change]:
        if contender == 0:
            store.commit(PutWatcher("default", RUN, watcher(2)))
        return [DeleteWatcher("default", RUN, *store.watchers("default", RUN, limit=1))]

    race(store, 2, ROUNDS, remove)
    assert store.watchers("default", RUN, limit=1) == ()


def test_two_who_send_one_event_have_one_winner(store: SingleTableStore) -> None:
    def send(number: int, contender: int) -> Sequence[Change]:
        message = PutMessage("default", RUN, event(2 * number + contender))
        return [message, PutEventReference("default", RUN, "paid", f"webhook {number}")]

    race(store, 2, ROUNDS, send)
    assert len(store.inbox("default", RUN, after=-1)) == ROUNDS


def test_a_transaction_that_takes_the_slot_and_an_append_to_it_have_one_winner(store: SingleTableStore) -> None:
    """Recovery against a zombie: whoever has the slot has the run, and the loser has written nothing at all."""
    store.commit(CreateRun(queued_run()))

    def fence(number: int, contender: int) -> Sequence[Change]:
        slot = PutSlot("default", RUN, task_slot(number, output=contender))
        if contender:
            return [slot]
        return [SaveRun(claimed(store.load("default", RUN)).model_copy(update={"revision": number})), slot]

    race(store, 2, ROUNDS, fence)
    slots = store.log("default", RUN, after=-1, max_bytes=10**9).slots
    taken = [slot.position for slot in slots if slot == task_slot(slot.position, output=0)]
    assert len(slots) == ROUNDS
    assert store.load("default", RUN).revision == (taken[-1] if taken else 0)


def test_four_transactions_over_one_header_have_one_winner(store: SingleTableStore) -> None:
    store.commit(CreateRun(queued_run()))

    def transactions(number: int, contender: int) -> Sequence[Change]:
        return [SaveRun(store.load("default", RUN)), CreateRun(queued_run(10 + 4 * number + contender))]

    race(store, 4, 50, transactions)
    due = store.due_runs(until=queued_run().created_at, limit=1000)
    assert len(due) == 1 + 50
