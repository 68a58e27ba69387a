"""Commits of every kind, and what makes calls of a FaultyTable fail."""

from collections.abc import Callable, Sequence

import pytest

from aiki_push.adapters.storage.store import SingleTableStore
from aiki_push.adapters.storage.table import Key, Query, Write
from aiki_push.domain.changes import (
    Change,
    CreateRun,
    DeleteWatcher,
    PutEventReference,
    PutMessage,
    PutReference,
    PutSlot,
    PutWatcher,
    SaveRun,
)
from aiki_push.domain.errors import StorageUnavailable
from tests.contracts.stored_examples import child_ended, claimed, event, queued_run, run_id, task_slot, watcher
from tests.contracts.test_store_references import naming, referred

RUN = run_id(1)
CHILD = run_id(3)


class Fails:
    """Raises at the calls with these numbers (the first is 0), after `act` if there is one; `calls` counts all."""

    def __init__(self, calls: range, act: Callable[[], None] | None = None) -> None:
        self._failing = calls
        self._act = act
        self.calls = 0

    def __call__(self, _: Sequence[Write] | Key | Query) -> None:
        number, self.calls = self.calls, self.calls + 1
        if number in self._failing:
            if self._act is not None:
                self._act()
            raise StorageUnavailable("injected")


ONCE = range(1)
ALWAYS = range(10**6)


def create(_: SingleTableStore) -> Sequence[Change]:
    return [CreateRun(queued_run(2))]


def save(store: SingleTableStore) -> Sequence[Change]:
    return [SaveRun(claimed(store.load("default", RUN)))]


def start_with_reference(_: SingleTableStore) -> Sequence[Change]:
    run = referred(2)
    return [CreateRun(run), PutReference(naming(run))]


def put_slot(_: SingleTableStore) -> Sequence[Change]:
    return [PutSlot("default", RUN, task_slot(0))]


def put_message(_: SingleTableStore) -> Sequence[Change]:
    return [PutMessage("default", RUN, event(1))]


def put_event_reference(_: SingleTableStore) -> Sequence[Change]:
    return [PutEventReference("default", RUN, "paid", "webhook 7")]


def send_event(store: SingleTableStore) -> Sequence[Change]:
    return [*save(store), *put_message(store), *put_event_reference(store)]


def start_child(_: SingleTableStore) -> Sequence[Change]:
    return [PutSlot("default", RUN, task_slot(0)), CreateRun(queued_run(3)), PutWatcher("default", CHILD, watcher(1))]


def watched(store: SingleTableStore) -> DeleteWatcher:
    """The removal of a watcher that is there now."""
    store.commit(PutWatcher("default", CHILD, watcher(1)))
    return DeleteWatcher("default", CHILD, *store.watchers("default", CHILD, limit=1))


def tell(store: SingleTableStore) -> Sequence[Change]:
    return [*save(store), PutMessage("default", RUN, child_ended(1, CHILD)), watched(store)]


def transaction(store: SingleTableStore) -> Sequence[Change]:
    return [*save(store), *put_slot(store), *put_message(store), *create(store)]


every_commit = pytest.mark.parametrize(
    "changes",
    [
        create,
        save,
        start_with_reference,
        put_slot,
        put_message,
        put_event_reference,
        send_event,
        start_child,
        tell,
        transaction,
    ],
)
