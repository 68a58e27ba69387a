"""What follows the end of a run: those who watch it are told, and what a cancelled run has started is cancelled too."""

import logging
from collections.abc import Callable, Iterator, Mapping

from aiki_push.domain.changes import DeleteWatcher
from aiki_push.domain.errors import ApiError, IllegalTransition, NotFound, StorageUnavailable
from aiki_push.domain.follow_ups import (
    cancellation_of_children,
    children_in,
    decide_dropping,
    decide_settled,
    decide_telling,
)
from aiki_push.domain.inbox import Watcher
from aiki_push.domain.run import Duty, Run
from aiki_push.domain.run_transitions import is_terminal
from aiki_push.domain.values import RunId
from aiki_push.ports.store import CommitRefused
from aiki_push.server.context import MAX_ROUNDS, ServerContext, overcrowded
from aiki_push.server.controls import cancel_run
from aiki_push.server.endings import ending_for

WATCHERS_PAGE = 25
LOG_PAGE_BYTES = 1024 * 1024

_log = logging.getLogger(__name__)


def follow_up(context: ServerContext, ended: Run) -> None:
    """Do what is left to do for `ended`. What cannot be done yet is looked at again later.

    Repeated, or done by two at once, it comes to the same. Raises StorageUnavailable.
    """
    done: list[Duty] = [duty for duty in ended.duties if _DUTIES[duty](context, ended)]
    context.change(ended.namespace, ended.id, lambda run: decide_settled(run, done, context.clock.now()))


def _tell_watchers(context: ServerContext, ended: Run) -> bool:
    """Whether nobody is left to be told. One who cannot be told now keeps nobody else waiting."""
    stuck: set[RunId] = set()
    while True:
        # The stuck ones are there still: as many more are read, so that there is always somebody new.
        page = context.store.watchers(ended.namespace, ended.id, limit=WATCHERS_PAGE + len(stuck))
        untold = [watcher for watcher in page if watcher.run_id not in stuck]
        if not untold:
            return not stuck
        stuck.update(watcher.run_id for watcher in untold if not _is_told(context, ended, watcher))


def _is_told(context: ServerContext, ended: Run, watcher: Watcher) -> bool:
    try:
        _tell(context, ended, watcher)
    except StorageUnavailable:
        raise
    except ApiError:
        message = "run %s could not be told of the end of run %s; it is tried again later"
        _log.exception(message, watcher.run_id, ended.id, extra={"aiki.run_id": watcher.run_id})
        return False
    return True


def _tell(context: ServerContext, ended: Run, watcher: Watcher) -> None:
    for attempt in range(MAX_ROUNDS):
        waiting = _living(context, ended.namespace, watcher.run_id)
        if waiting is None:
            changes = decide_dropping(ended, watcher)
        else:
            ending = ending_for(context, ended, watcher=waiting.id)
            changes = decide_telling(ended, watcher, waiting, ending, context.clock.now())
        try:
            context.commit(changes)
            return
        except CommitRefused as refused:
            if any(isinstance(refusal.change, DeleteWatcher) for refusal in refused.refusals):
                return  # somebody else has told it, or made it a watcher anew: then it is read again
            context.back_off(attempt)
    raise overcrowded(watcher.run_id)


def _living(context: ServerContext, namespace: str, run_id: RunId) -> Run | None:
    """The run, or None where it is gone or has ended."""
    try:
        run = context.store.load(namespace, run_id)
    except NotFound:
        return None
    return None if is_terminal(run) else run


def _cancel_children(context: ServerContext, cancelled: Run) -> bool:
    """Whether every run that `cancelled` has created has ended. One that cannot be cancelled now keeps no other going.

    Each was recorded in the transaction that created it, and the slot after the last such was taken by the cancel: so these are all.
    """
    children = tuple(dict.fromkeys(_children(context, cancelled)))
    readable = {run.id: run for run in context.store.load_many(cancelled.namespace, children)}
    going = [child for child in children if child not in readable or not is_terminal(readable[child])]
    return all([_has_ended(context, cancelled, child) for child in going])


def _children(context: ServerContext, run: Run) -> Iterator[RunId]:
    after, is_last = -1, False
    while not is_last:
        page = context.store.log(run.namespace, run.id, after=after, max_bytes=LOG_PAGE_BYTES)
        for slot in page.slots:
            yield from children_in(slot.records)
            after = slot.position
        is_last = page.is_last
    yield from children_in(run.tail.records)


def _has_ended(context: ServerContext, cancelled: Run, child: RunId) -> bool:
    try:
        cancel_run(
            context,
            cancelled.namespace,
            child,
            cancellation_of_children(cancelled),
            f"run {cancelled.id}, which had started it, was cancelled",
        )
        return _living(context, cancelled.namespace, child) is None
    except (NotFound, IllegalTransition):
        return True
    except StorageUnavailable:
        raise
    except ApiError:
        message = "run %s could not be cancelled after run %s; it is tried again later"
        _log.exception(message, child, cancelled.id, extra={"aiki.run_id": child})
        return False


_DUTIES: Mapping[Duty, Callable[[ServerContext, Run], bool]] = {
    "tell_watchers": _tell_watchers,
    "cancel_children": _cancel_children,
}
