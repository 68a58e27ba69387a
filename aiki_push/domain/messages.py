"""Telling a run something: a message in its inbox, in one transaction with the wake-up of a run that waits for it."""

from dataclasses import dataclass

from aiki_push.domain.changes import Change, PutMessage, SaveRun
from aiki_push.domain.inbox import Message, MessageKind, RunEnding
from aiki_push.domain.log_records import Transition
from aiki_push.domain.run import Run
from aiki_push.domain.run_states import PARKED, Queued, QueuedReason
from aiki_push.domain.run_transitions import keep_in_tail, queue
from aiki_push.domain.values import StoredValue, TimestampMs
from aiki_push.domain.waits import ANY_KEY, Wait, WaitKind

MAX_WINDOW_MS = 1_000
WINDOW_MS_PER_CHILD = 10
"""A run that waits for many children is woken for several of their ends at once: the longer, the more it waits for."""

_WAITS: dict[MessageKind, WaitKind] = {"event": "event", "child": "child", "wakeup": "sleep"}
_REASONS: dict[MessageKind, QueuedReason] = {"event": "event", "child": "child_workflow", "wakeup": "wakeup_early"}


@dataclass(frozen=True, slots=True)
class News:
    """What a run is to be told: an event with its `data`, a child's `ending`, an early wake of the sleep `key`. See Message."""

    kind: MessageKind
    key: str
    data: StoredValue | None = None
    ending: RunEnding | None = None


def tell(run: Run, news: tuple[News, ...], now: TimestampMs) -> tuple[Change, ...]:
    """The next messages of the inbox, in this order, and the header, which is queued where the run waits for one of them.

    The run has not ended. Only a parked run is woken: one that is paused, or waits for its next attempt, finds its messages later.
    """
    first = run.inbox_seq + 1
    puts = tuple(PutMessage(run.namespace, run.id, _message(one, first + place, now)) for place, one in enumerate(news))
    told = run.model_copy(update={"inbox_seq": run.inbox_seq + len(news)})
    wanted = [one for one in news if run.state.status in PARKED and _is_wanted(run, one)]
    if not wanted:
        return SaveRun(told), *puts
    return *_woken(told, wanted, now), *puts


def _message(news: News, seq: int, now: TimestampMs) -> Message:
    return Message(seq=seq, at=now, kind=news.kind, key=news.key, data=news.data, ending=news.ending)


def _is_wanted(run: Run, news: News) -> bool:
    return any(wait.kind == _WAITS[news.kind] and _is_same(wait, news) for wait in run.waits)


def _is_same(wait: Wait, news: News) -> bool:
    return wait.key == news.key or ANY_KEY in (wait.key, news.key)


def _woken(told: Run, wanted: list[News], now: TimestampMs) -> tuple[Change, ...]:
    urgent = next((one for one in wanted if one.kind != "child"), None)
    if urgent is not None or told.inbox_seq - told.seen_seq >= told.open_child_waits:
        queued, record = queue(told, Queued(reason=_REASONS[(urgent or wanted[0]).kind]), now)
        return keep_in_tail(queued, (record,), now)
    window_ms = min(MAX_WINDOW_MS, WINDOW_MS_PER_CHILD * told.open_child_waits)
    due_at = now + window_ms if told.due_at is None else min(told.due_at, now + window_ms)
    return (SaveRun(told.model_copy(update={"due_at": due_at})),)


def wants_any(run: Run, kind: MessageKind, key: str) -> bool:
    """Whether the parked `run` waits for messages of this kind and key."""
    return _is_wanted(run, News(kind=kind, key=key))


def ending_of(run: Run, told: Transition) -> RunEnding:
    """How `run` ended, by the record of its last transition."""
    return RunEnding.model_validate(
        {"state": run.state, "output": told.output, "error": told.error, "explanation": told.explanation}
    )
