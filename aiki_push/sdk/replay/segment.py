"""One execution of a workflow under one claim: replay what is recorded, then go on from there.

The workflow runs until every branch waits for something durable. Then whatever happened next, by the log or by the world, is given to
it, one thing at a time. Its new calls are written down before anything that they ask for begins: effects wait for the log, results do not.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from aiki_push.domain.errors import NothingToWaitFor
from aiki_push.domain.log_records import TaskBackingOff, TaskCancelled, TaskStarted, WaitEnded, WaitStarted
from aiki_push.domain.values import Json, RunId, TimestampMs
from aiki_push.domain.waits import Wait
from aiki_push.ports.api.claims import InboxMoved, Park, SegmentEnd, Stall
from aiki_push.ports.clock import Clock
from aiki_push.ports.entropy import Entropy
from aiki_push.sdk.failures import OutcomeUnknown
from aiki_push.sdk.replay.divergence import explain
from aiki_push.sdk.replay.ending import Attempt, failure, result_of
from aiki_push.sdk.replay.handlers import Ended, Handlers
from aiki_push.sdk.replay.journal import Journal, LostRun
from aiki_push.sdk.replay.live_task import LiveTask, interruption_of
from aiki_push.sdk.replay.memory import timer_key
from aiki_push.sdk.replay.replayer import Replayer
from aiki_push.sdk.replay.timers import DurableTimer
from aiki_push.sdk.replay.turns import in_plain_callback

SLOW_STEP_MS = 1_000
"""A workflow that computes for longer than this between two waits is reported: it belongs in a task."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class SegmentConfig:
    """Times in milliseconds.

    max_inline_wait_ms: deadlines nearer than this are waited for in place, and nothing is written before such a wait.
    max_interruptions: a task whose executions were cut off more often than this fails with TaskInterrupted.
    grace_period_ms: how long the end of a segment waits for handlers that were cancelled and do not stop.
    """

    max_inline_wait_ms: int = 10
    max_interruptions: int = 5
    grace_period_ms: int = 5_000


class Segment:
    """Drives one execution.

    `now` is the server's time, `encode` turns what the workflow returned into JSON, `attempt` says what comes after a failure,
    `seen_seq` is the last message of the inbox seen.
    """

    def __init__(
        self,
        run_id: RunId,
        replayer: Replayer,
        journal: Journal,
        *,
        now: Callable[[], TimestampMs],
        clock: Clock,
        entropy: Entropy,
        config: SegmentConfig,
        encode: Callable[[object], Json],
        attempt: Attempt,
        seen_seq: int,
    ) -> None:
        self._run_id = run_id
        self._replayer = replayer
        self._journal = journal
        self._now = now
        self._clock = clock
        self._config = config
        self._entropy = entropy
        self._encode = encode
        self._attempt = attempt
        self._news = asyncio.Event()
        self._handlers = Handlers(run_id, now, entropy.fraction, on_outcome=self._keep_outcome, on_stop=self._news.set)
        self._ended: deque[tuple[LiveTask, Ended]] = deque()
        self._backing_off: list[LiveTask] = []
        self._started_timers: set[int] = set()
        self._seen_seq = seen_seq
        self._is_lost = False

    def lose(self) -> None:
        """The run goes on elsewhere: stop. Called on the segment's event loop."""
        self._is_lost = True
        self._news.set()

    async def run(self, main: asyncio.Task[object]) -> SegmentEnd:
        """Execute until the segment has ended, and return how. Raises LostRun, AbandonedSegment, ApiError."""
        try:
            while True:
                await self._turn()
                end = await self._go_on(main)
                if end is not None and await self._is_ended(end):
                    return end
        finally:
            self._handlers.cancel_all()
            await in_plain_callback(self._replayer.loop.drop)

    async def _is_ended(self, end: SegmentEnd) -> bool:
        answer = await self._journal.end(end)
        if isinstance(answer, InboxMoved):
            self._seen_seq = answer.messages[-1].seq
        return not isinstance(answer, InboxMoved)

    async def _go_on(self, main: asyncio.Task[object]) -> SegmentEnd | None:
        """What comes after the workflow is idle: an end, or None once there is something new for it."""
        while True:
            self._check_lost()
            self._note_cancelled()
            if end := await self._verdict(main):
                return end
            if self._give_next():
                return None
            if effects := self._effects():
                await self._begin(effects)
            elif not self._ended and (end := await self._wait()):
                return end

    async def _verdict(self, main: asyncio.Task[object]) -> SegmentEnd | None:
        """How the segment ends by what the workflow did: what must not go on, its return, its error; None where it goes on."""
        replayer = self._replayer
        if replayer.stall_reason is not None:
            return Stall(reason="cannot_restore", explanation=replayer.stall_reason)
        if replayer.loop.violation is not None:
            return failure(replayer.loop.violation)
        if main.done():
            await self._handlers.end(grace_ms=self._config.grace_period_ms)
            return result_of(main, self._encode, replayer.given, self._next_attempt_at)
        if replayer.new and (missing := replayer.missing):
            return Stall(reason="diverged", explanation=explain(replayer.new, missing))
        return None

    def _next_attempt_at(self, error: BaseException) -> TimestampMs | None:
        return self._attempt.next_at(error, self._now(), self._entropy.fraction())

    # ---- the workflow's turn

    async def _turn(self) -> None:
        asked_ms = self._clock.monotonic_ms()
        while await in_plain_callback(self._replayer.turn):
            pass
        taken_ms = self._clock.monotonic_ms() - asked_ms
        if taken_ms > SLOW_STEP_MS:
            _log.warning(
                "the workflow of run %s computed for %d ms without waiting; do such work in a task",
                self._run_id,
                taken_ms,
                extra={"aiki.run_id": self._run_id},
            )

    def _give_next(self) -> bool:
        """Give the workflow the earliest thing that has happened: the end of a handler, or a deadline that has passed."""
        while self._ended and self._ended[0][0].is_cancelled:
            self._ended.popleft()
        timer = next(iter(self._replayer.loop.timers), None)
        until = self._ended[0][1].at if self._ended else self._now()
        if timer is not None and timer.deadline_at <= until:
            self._fire(timer)
            return True
        if not self._ended:
            return False
        live, record = self._ended.popleft()
        self._journal.add(record)
        if isinstance(record, TaskBackingOff):
            self._back_off(live, record)
            return False
        self._replayer.give(live, record)
        return True

    def _fire(self, timer: DurableTimer) -> None:
        self._note_timers()
        self._journal.add(WaitEnded(at=self._now(), kind="timer", key=timer_key(timer.branch), ordinal=timer.ordinal))
        self._replayer.fire(timer, self._now())

    def _back_off(self, live: LiveTask, record: TaskBackingOff) -> None:
        live.next_attempt_at = record.next_attempt_at
        live.attempt += 1
        self._backing_off.append(live)

    def _note_cancelled(self) -> None:
        for live in self._replayer.cancelled:
            self._handlers.cancel(live)
            self._journal.add(TaskCancelled(at=self._now(), task_id=live.task_id))
            if live in self._backing_off:
                self._backing_off.remove(live)
        self._replayer.cancelled.clear()

    def _note_timers(self) -> None:
        for timer in self._replayer.loop.timers:
            if timer.number not in self._started_timers:
                self._started_timers.add(timer.number)
                if not self._replayer.is_recorded(timer):
                    started = WaitStarted(
                        at=self._now(),
                        kind="timer",
                        key=timer_key(timer.branch),
                        ordinal=timer.ordinal,
                        deadline_at=timer.deadline_at,
                    )
                    self._journal.add(started)

    # ---- the world's turn

    def _effects(self) -> list[tuple[LiveTask, TaskStarted]]:
        """The handlers that are to start now, in the order of their calls, each with the record that must be written first."""
        now = self._now()
        resumed = [live for live in self._replayer.resumed if not self._is_settled(live, now)]
        due = [live for live in self._backing_off if live.next_attempt_at <= now]
        self._backing_off = [live for live in self._backing_off if live.next_attempt_at > now]
        starting = [*resumed, *due, *self._replayer.new]
        self._replayer.resumed.clear()
        self._replayer.new.clear()
        return [(live, live.started(now)) for live in starting]

    def _is_settled(self, live: LiveTask, now: TimestampMs) -> bool:
        """Whether a call that the log knows without an outcome must not simply run again: it backs off, or it has failed."""
        if live.recorded is not None and live.recorded.backing_off is not None:
            self._back_off(live, live.recorded.backing_off)
            return True
        error = interruption_of(live, self._config.max_interruptions)
        if error is not None:
            # What must not be repeated blindly is not repeated by a retry of the workflow either.
            is_final = error.name == OutcomeUnknown.__name__
            self._ended.append((live, live.failed(now, error, is_final=is_final)))
        return error is not None

    async def _begin(self, effects: list[tuple[LiveTask, TaskStarted]]) -> None:
        self._note_timers()
        self._journal.add(*(record for _, record in effects))
        await self._journal.flush()
        self._check_lost()
        for live, _ in effects:
            self._handlers.start(live)

    async def _wait(self) -> SegmentEnd | None:
        """Wait for a handler, a deadline or news; or say how the segment ends, where there is nothing to wait for here."""
        self._note_timers()
        timers = self._replayer.loop.timers
        deadlines = [timer.deadline_at for timer in timers[:1]] + [live.next_attempt_at for live in self._backing_off]
        left_ms = min(deadlines) - self._now() if deadlines else None
        is_short = left_ms is not None and left_ms <= self._config.max_inline_wait_ms
        if self._handlers.running and self._journal.has_pending and not is_short:
            await self._journal.flush()
        elif self._handlers.running or is_short:
            await self._wait_for_news(left_ms)
        elif deadlines:
            waits = (*map(_timer_wait, timers), *map(_retry_wait, self._backing_off))
            return Park(waits=waits, seen_seq=self._seen_seq)
        else:
            stands = self._replayer.loop.where_branches_stand()
            return failure(NothingToWaitFor(f"every branch waits, and nothing that they wait for can happen:\n{stands}"))
        return None

    async def _wait_for_news(self, left_ms: int | None) -> None:
        try:
            async with asyncio.timeout(None if left_ms is None else max(left_ms, 0) / 1_000):
                await self._news.wait()
        except TimeoutError:
            return
        self._news.clear()

    def _keep_outcome(self, live: LiveTask, record: Ended) -> None:
        self._ended.append((live, record))

    def _check_lost(self) -> None:
        if self._is_lost:
            raise LostRun("the claim keeper heard that the run moved on")


def _retry_wait(live: LiveTask) -> Wait:
    return Wait(kind="task_retry", key=live.task_id, ordinal=live.attempt, deadline_at=live.next_attempt_at)


def _timer_wait(timer: DurableTimer) -> Wait:
    return Wait(kind="timer", key=timer_key(timer.branch), ordinal=timer.ordinal, deadline_at=timer.deadline_at)
