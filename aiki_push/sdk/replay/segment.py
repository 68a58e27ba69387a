"""One execution of a workflow under one claim: replay what is recorded, then go on from there.

The workflow runs until every branch waits for something durable. Then whatever happened next, by the log or by the world, is given to
it, one thing at a time. Its new calls are written down before anything that they ask for begins: effects wait for the log, results do not.
"""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass
from math import inf

from aiki_push.domain.errors import NothingToWaitFor
from aiki_push.domain.log_records import TaskCancelled
from aiki_push.domain.run_states import Status
from aiki_push.domain.values import Json, RunId, TimestampMs
from aiki_push.ports.api.checkpoints import InboxMoved, Park, SegmentEnd, Stall, Yield
from aiki_push.ports.api.claims import Inbox
from aiki_push.ports.clock import Clock
from aiki_push.ports.entropy import Entropy
from aiki_push.sdk.failures import OutcomeUnknown
from aiki_push.sdk.replay.divergence import Titled, explain
from aiki_push.sdk.replay.ending import Attempt, failure, result_of
from aiki_push.sdk.replay.handlers import Ended, Handlers
from aiki_push.sdk.replay.happenings import Happenings
from aiki_push.sdk.replay.journal import Journal, LostRun
from aiki_push.sdk.replay.live_call import LiveCall
from aiki_push.sdk.replay.live_task import LiveTask, interruption_of
from aiki_push.sdk.replay.log_reading import values_in
from aiki_push.sdk.replay.replayer import Replayer
from aiki_push.sdk.replay.turns import in_plain_callback
from aiki_push.sdk.replay.values import Values

SLOW_STEP_MS = 1_000
"""A workflow that computes for longer than this between two waits is reported: it belongs in a task."""

YIELD_GRACE_MS = 1_000
"""How long cancelled handlers may take to stop before the run is handed back: little time is left in the invocation."""

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

    `now` is the server's time, `left_ms` how long this invocation still lasts, `encode` turns what the workflow returned into JSON,
    `attempt` says what comes after a failure; every message sent before `inbox_known_at` was heard. Once the segment has ended,
    `status` is what the run became.
    """

    def __init__(
        self,
        run_id: RunId,
        replayer: Replayer,
        journal: Journal,
        values: Values,
        *,
        now: Callable[[], TimestampMs],
        left_ms: Callable[[], float] = lambda: inf,
        clock: Clock,
        entropy: Entropy,
        config: SegmentConfig,
        encode: Callable[[object], Json],
        attempt: Attempt,
        inbox_known_at: TimestampMs,
    ) -> None:
        self.status: Status | None = None
        self._run_id = run_id
        self._replayer = replayer
        self._journal = journal
        self._values = values
        self._now = now
        self._left_ms = left_ms
        self._clock = clock
        self._config = config
        self._entropy = entropy
        self._encode = encode
        self._attempt = attempt
        self._inbox_known_at = inbox_known_at
        self._signal = asyncio.Event()
        self._happenings = Happenings(replayer, journal, now)
        self._handlers = Handlers(run_id, now, entropy.fraction, on_outcome=self._keep_outcome, on_stop=self._signal.set)
        self._heard: list[Inbox] = []
        self._is_directed = False
        self._is_lost = False

    def lose(self) -> None:
        """The run goes on elsewhere: stop. Called on the segment's event loop."""
        self._is_lost = True
        self._signal.set()

    def hear(self, news: Inbox) -> None:
        """The server has news of the run. Called on the segment's event loop."""
        self._heard.append(news)
        self._signal.set()

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
        if isinstance(end, Yield):
            # The next executor must not meet a handler that still runs here.
            await self._handlers.end(grace_ms=min(self._config.grace_period_ms, YIELD_GRACE_MS))
        answer = await self._journal.end(end)
        if isinstance(answer, InboxMoved):
            await self._values.fetch(values_in(answer.messages))
            self._replayer.hear(answer.messages)
            return False
        self.status = answer.status
        return True

    async def _go_on(self, main: asyncio.Task[object]) -> SegmentEnd | None:
        """What comes after the workflow is idle: an end, or None once there is something new for it."""
        while True:
            self._check_lost()
            await self._take_in_news()
            await self._look_before_a_deadline()
            self._note_cancelled()
            if end := await self._verdict(main):
                return end
            if self._happenings.give_next():
                return None
            if self._is_directed:
                return Yield(explanation="its executor was directed to stop")
            tasks, calls = self._effects(), self._take_calls()
            if tasks or calls:
                await self._begin(tasks, calls)
            elif not self._happenings.has_ended and (end := await self._wait()):
                return end

    async def _take_in_news(self) -> None:
        while self._heard:
            news = self._heard.pop(0)
            self._is_directed = self._is_directed or news.directive is not None
            await self._values.fetch(values_in(news.messages))
            self._replayer.hear(news.messages)

    async def _look_before_a_deadline(self) -> None:
        """A message that was sent before a deadline goes before it, also if nobody has told us of it yet."""
        deadline, now = self._happenings.first_deadline(), self._now()
        if len(self._replayer.waits) and deadline is not None and self._inbox_known_at < deadline <= now:
            inbox = await self._journal.inbox(self._replayer.waits.seen_seq)
            self._inbox_known_at = now
            self._heard.append(inbox)
            await self._take_in_news()

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
        new: list[Titled] = [*replayer.new, *replayer.new_calls]
        if new and (missing := replayer.missing):
            return Stall(reason="diverged", explanation=explain(new, missing))
        return None

    def _next_attempt_at(self, error: BaseException) -> TimestampMs | None:
        return self._attempt.next_at(error, self._now(), self._entropy.fraction())

    async def _turn(self) -> None:
        while await in_plain_callback(self._timed_turn):
            pass

    def _timed_turn(self) -> bool:
        asked_ms = self._clock.monotonic_ms()
        is_more_left = self._replayer.turn()
        taken_ms = self._clock.monotonic_ms() - asked_ms
        if taken_ms > SLOW_STEP_MS:
            _log.warning(
                "the workflow of run %s computed for %d ms without waiting; do such work in a task",
                self._run_id,
                taken_ms,
                extra={"aiki.run_id": self._run_id},
            )
        return is_more_left

    def _note_cancelled(self) -> None:
        for live in self._replayer.cancelled:
            self._handlers.cancel(live)
            self._journal.add(TaskCancelled(at=self._now(), task_id=live.task_id))
            self._happenings.forget(live)
        self._replayer.cancelled.clear()

    # ---- the world's turn

    def _effects(self) -> list[LiveTask]:
        """The tasks whose handlers are to start now, in the order of their calls: those that fit into what is left of the invocation."""
        replayer, now, left_ms = self._replayer, self._now(), self._left_ms()
        resumed = [live for live in replayer.resumed if not self._is_settled(live, now)]
        wanted = [*resumed, *self._happenings.due_retries(now), *replayer.new]
        starting = {live: None for live in wanted if live.fits(left_ms)}
        replayer.resumed = [live for live in resumed if live not in starting]
        replayer.new = [live for live in replayer.new if live not in starting]
        for live in starting:
            self._happenings.forget(live)
        return list(starting)

    def _take_calls(self) -> list[LiveCall]:
        calls, self._replayer.new_calls = self._replayer.new_calls, []
        return calls

    def _is_settled(self, live: LiveTask, now: TimestampMs) -> bool:
        """Whether a call that the log knows without an outcome must not simply run again: it backs off, or it has failed."""
        if live.recorded is not None and live.recorded.backing_off is not None:
            self._happenings.back_off(live, live.recorded.backing_off)
            return True
        error = interruption_of(live, self._config.max_interruptions)
        if error is not None:
            # What must not be repeated blindly is not repeated by a retry of the workflow either.
            is_final = error.name == OutcomeUnknown.__name__
            self._happenings.task_ended(live, live.failed(now, error, is_final=is_final))
        return error is not None

    async def _begin(self, tasks: list[LiveTask], calls: list[LiveCall]) -> None:
        now = self._now()
        self._happenings.note_waits()
        self._journal.add(*(live.started(now) for live in tasks))
        ended = await self._journal.flush([live.request for live in calls])
        self._check_lost()
        for call, outcome in zip(calls, ended, strict=True):
            self._happenings.call_ended(call, outcome)
        for live in tasks:
            self._handlers.start(live)

    async def _wait(self) -> SegmentEnd | None:
        """Wait for a handler, a deadline or news; or say how the segment ends, where there is nothing to wait for here."""
        self._happenings.note_waits()
        held = [*self._replayer.resumed, *self._happenings.due_retries(self._now()), *self._replayer.new]
        invocation_ms = self._left_ms()
        deadline = self._happenings.first_deadline()
        left_ms = inf if deadline is None else deadline - self._now()
        is_short = left_ms <= self._config.max_inline_wait_ms and left_ms < invocation_ms
        if held and not self._handlers.running or invocation_ms <= 0 and (self._handlers.running or held):
            return Yield(explanation=_what_does_not_fit(held or list(self._handlers.running), invocation_ms))
        if self._handlers.running and self._journal.has_pending and not is_short:
            await self._journal.flush()
        elif self._handlers.running or is_short:
            await self._wait_for_signal(min(left_ms, invocation_ms))
        elif waits := self._happenings.to_park_on():
            return Park(waits=waits, seen_seq=self._replayer.waits.seen_seq)
        else:
            stands = self._replayer.loop.where_branches_stand()
            return failure(NothingToWaitFor(f"every branch waits, and nothing that they wait for can happen:\n{stands}"))
        return None

    async def _wait_for_signal(self, left_ms: float) -> None:
        try:
            async with asyncio.timeout(None if left_ms == inf else max(left_ms, 0) / 1_000):
                await self._signal.wait()
        except TimeoutError:
            return
        self._signal.clear()

    def _keep_outcome(self, live: LiveTask, record: Ended) -> None:
        self._happenings.task_ended(live, record)

    def _check_lost(self) -> None:
        if self._is_lost:
            raise LostRun("the claim keeper heard that the run moved on")


def _what_does_not_fit(tasks: list[LiveTask], left_ms: float) -> str:
    names = ", ".join(sorted({live.call.name for live in tasks}))
    return f"the invocation has {max(int(left_ms), 0)} ms left, too little for {names}"
