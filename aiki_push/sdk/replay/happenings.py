"""What has happened and is not yet given to the workflow: ends of handlers and calls, messages, deadlines; and in which order they go."""

from collections import deque
from collections.abc import Callable, Iterator
from typing import TypeAlias, get_args

from aiki_push.domain.inbox import Message
from aiki_push.domain.log_records import CallEnded, TaskBackingOff, WaitEnded, WaitStarted
from aiki_push.domain.values import TimestampMs
from aiki_push.domain.waits import Wait, WaitKind, put_together
from aiki_push.ports.api.checkpoints import MAX_WAITS
from aiki_push.sdk.replay.handlers import Ended
from aiki_push.sdk.replay.journal import Journal
from aiki_push.sdk.replay.live_call import LiveCall
from aiki_push.sdk.replay.live_task import LiveTask
from aiki_push.sdk.replay.live_wait import LiveWait
from aiki_push.sdk.replay.recorded import timer_key
from aiki_push.sdk.replay.replayer import Replayer
from aiki_push.sdk.replay.timers import DurableTimer

_Candidate: TypeAlias = tuple[TimestampMs, int, Callable[[], bool]]
"""When it happened, what goes first at the same time, and what gives it: whether the workflow got something."""

_MESSAGE, _DEADLINE, _OUTCOME = range(3)


class Happenings:
    """Gives the workflow one thing at a time, in the order of their times, and writes each down. `now` is the server's time."""

    def __init__(self, replayer: Replayer, journal: Journal, now: Callable[[], TimestampMs]) -> None:
        self._replayer = replayer
        self._journal = journal
        self._now = now
        self._tasks: deque[tuple[LiveTask, Ended]] = deque()
        self._calls: deque[tuple[LiveCall, CallEnded]] = deque()
        self._backing_off: list[LiveTask] = []
        self._noted_timers: set[int] = set()

    # ---- what happens

    def task_ended(self, live: LiveTask, record: Ended) -> None:
        """A handler ended, or a task is over without one."""
        self._tasks.append((live, record))

    def call_ended(self, live: LiveCall, record: CallEnded) -> None:
        """A call on another run was carried out or refused, and that is in the log."""
        self._calls.append((live, record))

    def back_off(self, live: LiveTask, record: TaskBackingOff) -> None:
        """The task is tried again, at the time that `record` says."""
        live.next_attempt_at = record.next_attempt_at
        live.attempt += 1
        self._backing_off.append(live)

    def forget(self, live: LiveTask) -> None:
        """The task starts again now, or is cancelled: it does not wait any longer."""
        if live in self._backing_off:
            self._backing_off.remove(live)

    # ---- what the workflow is given

    def give_next(self) -> bool:
        """Give the workflow the earliest thing that has happened. A message goes before a deadline of the same instant, and both go
        before an outcome of it. What became of a call goes before all of them, whenever it was: it is in the log already.
        """
        if self._calls:
            self._replayer.end_call(*self._calls.popleft())
            return True
        while candidates := list(self._candidates()):
            _, _, give = min(candidates, key=lambda one: one[:2])
            if give():
                return True
        return False

    @property
    def has_ended(self) -> bool:
        """Whether a handler or call has ended that the workflow was not told of."""
        return bool(self._tasks or self._calls)

    def _candidates(self) -> Iterator[_Candidate]:
        if found := self._replayer.waits.first_message():
            yield found[1].at, _MESSAGE, lambda: self._receive(*found)
        now = self._now() if self._has_deadlines else TimestampMs(0)
        wait, timer = self._replayer.waits.first_deadline(), next(iter(self._replayer.loop.timers), None)
        if wait is not None and wait.deadline_at is not None and wait.deadline_at <= now:
            yield wait.deadline_at, _DEADLINE, lambda: self._time_out(wait)
        if timer is not None and timer.deadline_at <= now:
            yield timer.deadline_at, _DEADLINE, lambda: self._fire(timer)
        while self._tasks and self._tasks[0][0].is_cancelled:
            self._tasks.popleft()
        if self._tasks:
            yield self._tasks[0][1].at, _OUTCOME, lambda: self._end_task(*self._tasks.popleft())

    @property
    def _has_deadlines(self) -> bool:
        return bool(self._replayer.loop.timers) or self._replayer.waits.first_deadline() is not None

    def _receive(self, wait: LiveWait, message: Message) -> bool:
        self.note_waits()
        record = wait.received(self._now(), message)
        self._journal.add(record)
        self._replayer.waits.take(wait, message)
        self._replayer.end_wait(wait, record)
        return True

    def _time_out(self, wait: LiveWait) -> bool:
        self.note_waits()
        record = wait.timed_out(self._now())
        self._journal.add(record)
        self._replayer.waits.discard(wait)
        self._replayer.end_wait(wait, record)
        return True

    def _fire(self, timer: DurableTimer) -> bool:
        self.note_waits()
        now = self._now()
        self._journal.add(WaitEnded(at=now, kind="timer", key=timer_key(timer.branch), ordinal=timer.ordinal))
        self._replayer.fire(timer, now)
        return True

    def _end_task(self, live: LiveTask, record: Ended) -> bool:
        self._journal.add(record)
        if isinstance(record, TaskBackingOff):
            self.back_off(live, record)
            return False
        self._replayer.give(live, record)
        return True

    # ---- what is still to come

    def note_waits(self) -> None:
        """Write down the waits that began, so that it shows since when the run waits, and until when."""
        now = self._now()
        for timer in self._replayer.loop.timers:
            if timer.number not in self._noted_timers:
                self._noted_timers.add(timer.number)
                if not self._replayer.is_recorded(timer):
                    self._journal.add(_timer_started(timer, now))
        self._journal.add(*(wait.started(now) for wait in self._replayer.begun if wait.needs_record and not wait.future.done()))
        self._replayer.begun.clear()

    def due_retries(self, now: TimestampMs) -> list[LiveTask]:
        """The tasks whose time to be tried again has come."""
        return [live for live in self._backing_off if live.next_attempt_at <= now]

    def first_deadline(self) -> TimestampMs | None:
        """The earliest time at which something happens by itself. A retry that is due is not to be waited for."""
        wait = self._replayer.waits.first_deadline()
        times = [timer.deadline_at for timer in self._replayer.loop.timers[:1]]
        times += [wait.deadline_at] if wait is not None and wait.deadline_at is not None else []
        now = self._now() if self._backing_off else TimestampMs(0)
        times += [live.next_attempt_at for live in self._backing_off if live.next_attempt_at > now]
        return min(times, default=None)

    def to_park_on(self) -> tuple[Wait, ...]:
        """Everything that the branches wait for, with what are too many to be told of put together."""
        timers = map(_timer_wait, self._replayer.loop.timers)
        waits = (wait.to_park_on() for wait in self._replayer.waits)
        everything = (*timers, *waits, *map(_retry_wait, self._backing_off))
        if len(everything) <= MAX_WAITS:
            return everything
        told = MAX_WAITS - len(get_args(WaitKind))
        return *everything[:told], *put_together(everything[told:])


def _timer_started(timer: DurableTimer, at: TimestampMs) -> WaitStarted:
    return WaitStarted(at=at, kind="timer", key=timer_key(timer.branch), ordinal=timer.ordinal, deadline_at=timer.deadline_at)


def _timer_wait(timer: DurableTimer) -> Wait:
    return Wait(kind="timer", key=timer_key(timer.branch), ordinal=timer.ordinal, deadline_at=timer.deadline_at)


def _retry_wait(live: LiveTask) -> Wait:
    return Wait(kind="task_retry", key=live.task_id, ordinal=live.attempt, deadline_at=live.next_attempt_at)
