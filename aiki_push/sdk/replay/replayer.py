"""The workflow's side of a segment: its event loop, the calls that it makes, and what the log already knows of them."""

import asyncio
import heapq
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine
from hashlib import sha256

from aiki_push.domain.ids import derived_id, join_key
from aiki_push.domain.inbox import Message
from aiki_push.domain.log_records import CallEnded, Received, TaskCompleted, TaskFailed, WaitEnded
from aiki_push.domain.values import Json, RunId, StoredValue, TimestampMs
from aiki_push.sdk.calls import RunCall, TaskCall, WaitCall
from aiki_push.sdk.failures import task_failure
from aiki_push.sdk.replay.live_call import LiveCall
from aiki_push.sdk.replay.live_task import LiveTask
from aiki_push.sdk.replay.live_wait import LiveWait
from aiki_push.sdk.replay.loop import WorkflowLoop
from aiki_push.sdk.replay.memory import Memory
from aiki_push.sdk.replay.open_waits import OpenWaits
from aiki_push.sdk.replay.recorded import CallKey, RecordedCall, RecordedTask, task_key, timer_key
from aiki_push.sdk.replay.timers import DurableTimer

MAX_GIVEN_A_TURN = 1_000
"""Recorded outcomes given before the ordinary event loop gets a turn, so that a long replay does not starve it."""


class Replayer:
    """Runs the workflow until it is idle, giving it what is recorded in recorded order. Implements `Calls`.

    After a turn: `new` and `new_calls` are the calls that the log does not know, `resumed` those that it knows without an outcome,
    `cancelled` those that the workflow cancelled since they were last taken, `unasked` the recorded calls that it has not made again;
    `waits` are those that it is in, and `begun` the ones among them that began since they were last taken.
    """

    def __init__(
        self,
        run_id: RunId,
        memory: Memory,
        value_of: Callable[[StoredValue], Json],
        *,
        attempt: int = 1,
        messages: tuple[Message, ...] = (),
    ) -> None:
        self.loop = WorkflowLoop()
        self.new: list[LiveTask] = []
        self.new_calls: list[LiveCall] = []
        self.resumed: list[LiveTask] = []
        self.cancelled: list[LiveTask] = []
        self.begun: list[LiveWait] = []
        self.waits = OpenWaits(memory.received)
        self.waits.hear(messages)
        self.unasked: dict[CallKey, RecordedTask | RecordedCall] = {**memory.tasks, **memory.calls}
        self.stall_reason: str | None = None
        self.given: dict[str, int] = {}
        self.value_of = value_of
        self._run_id = run_id
        self._attempt = attempt
        self._memory = memory
        self._messages = {message.seq: message for message in messages}
        self._ordinals: Counter[str] = Counter()
        self._waits_made = 0
        self._recorded: list[tuple[int, Callable[[], None]]] = []  # a heap: where it stands in the log, and what gives it
        self._seen_timers: set[int] = set()
        self._repeats = memory.has_worked
        self.loop.set_time_ms(memory.started_at)

    def start(self, workflow: Coroutine[object, object, object]) -> asyncio.Task[object]:
        """Begin the workflow; it runs in the next turn."""
        return self.loop.start(workflow)

    @property
    def missing(self) -> list[RecordedTask | RecordedCall]:
        """The calls that the code must make as it did before, and has not made yet."""
        return [call for call in self.unasked.values() if call.is_required]

    @property
    def now_at(self) -> TimestampMs:
        """See Calls."""
        return self.loop.now_at

    @property
    def is_dropping(self) -> bool:
        """Whether the workflow's branches are being closed."""
        return self.loop.dropping

    @property
    def is_replaying(self) -> bool:
        """Whether the workflow repeats what an earlier segment saw it do, or is being closed.

        What is recorded was written down after the workflow had used everything before it, to the last step that it could make.
        """
        return self._repeats or self.loop.dropping

    def turn(self) -> bool:
        """Run until idle, give the earliest recorded outcome that is waited for, and so on until there is none.

        True where more is left for another turn. Called by a plain callback of the ordinary event loop.
        """
        self.loop.run_until_idle()
        for _ in range(MAX_GIVEN_A_TURN):
            self._look_up_timers()
            if not self._recorded or self.loop.violation is not None or self.stall_reason is not None:
                return False
            _, give = heapq.heappop(self._recorded)
            give()
            self.loop.run_until_idle()
        return True

    # What durable code calls.

    def call_task(self, call: TaskCall) -> Awaitable[Json]:
        """A future for the task's outcome: the n-th call with this content takes what the log has of the n-th."""
        if self.loop.dropping:
            return self.loop.create_future()  # awaiting it raises Dropped
        key = task_key(call.name, call.input_hash)
        ordinal = self._next_ordinal(key)
        recorded = self.unasked.pop((key, ordinal), None)
        recorded = recorded if isinstance(recorded, RecordedTask) else None
        task_id = recorded.task_id if recorded else derived_id(self._run_id, key, str(ordinal))
        future: asyncio.Future[Json] = self.loop.create_future()
        live = LiveTask(call, task_id, ordinal, future, recorded, attempt=recorded.attempt if recorded else 1)
        if recorded is None:
            self.new.append(live)
        elif outcome := recorded.outcome:
            self._remember(recorded.outcome_index, lambda: self._give(live, outcome))
        else:
            self.resumed.append(live)
        future.add_done_callback(lambda done: self._done(live) if done.cancelled() else None)
        return future

    def call_run(self, call: RunCall) -> Awaitable[CallEnded]:
        """A future for what becomes of the call on another run, as for a task."""
        future: asyncio.Future[CallEnded] = self.loop.create_future()
        if self.loop.dropping:
            return future
        ordinal = self._next_ordinal(call.content)
        recorded = self.unasked.pop((call.content, ordinal), None)
        live = LiveCall(call.request(ordinal, derived_id(self._run_id, call.content, str(ordinal))), future)
        if isinstance(recorded, RecordedCall):
            outcome = recorded.outcome
            self._remember(recorded.index, lambda: self._end_call(live, outcome))
            return future
        self.new_calls.append(live)
        future.add_done_callback(lambda _: self.new_calls.remove(live) if live in self.new_calls else None)
        return future

    def wait(self, call: WaitCall) -> Awaitable[Message | None]:
        """A future for the message that ends the wait, or for its time."""
        future: asyncio.Future[Message | None] = self.loop.create_future()
        if self.loop.dropping:
            return future
        ordinal = self._next_ordinal(join_key("wait", call.kind, call.key))
        recorded = self._memory.waits.get((call.kind, call.key, ordinal))
        called_at = self.loop.now_at
        deadline_at = None if call.duration_ms is None else TimestampMs(called_at + call.duration_ms)
        self._waits_made += 1
        live = LiveWait(call, ordinal, self._waits_made, future, called_at, deadline_at, recorded)
        if recorded is not None and (ended := recorded.ended) is not None:
            self._remember(recorded.ended_index, lambda: self._end_wait(live, ended))
            return future
        self.waits.add(live)
        self.begun.append(live)
        future.add_done_callback(lambda _: self.waits.discard(live))
        return future

    def draw(self) -> bytes:
        """See Calls."""
        lineage = self.loop.lineage
        parts = join_key("draw", self._run_id, str(self._attempt), lineage.name, str(lineage.next_draw()))
        return sha256(parts.encode()).digest()[:16]

    def cannot_restore(self, reason: str) -> None:
        """A recorded value does not fit the code any more; the first reason counts."""
        self.stall_reason = self.stall_reason or reason

    # What happens now, given by the segment.

    def give(self, live: LiveTask, outcome: TaskCompleted | TaskFailed) -> None:
        """Let the workflow have `outcome`, which is news, at the time that it records."""
        self._repeats = False
        self._give(live, outcome)

    def end_call(self, live: LiveCall, outcome: CallEnded) -> None:
        """Let the workflow know what became of its call, which is news."""
        self._repeats = False
        self._end_call(live, outcome)

    def fire(self, timer: DurableTimer, at: TimestampMs) -> None:
        """Let the workflow know that the timer's deadline has passed, which is news, at the time `at`."""
        self._repeats = False
        self._fire(timer, at)

    def end_wait(self, live: LiveWait, record: Received | WaitEnded) -> None:
        """Let the workflow know that its wait has ended, which is news, at the time that `record` has."""
        self._repeats = False
        self._end_wait(live, record)

    def hear(self, messages: tuple[Message, ...]) -> None:
        """Take in messages that arrived."""
        self._messages |= {message.seq: message for message in messages}
        self.waits.hear(messages)

    def _next_ordinal(self, key: str) -> int:
        ordinal = self._ordinals[key]
        self._ordinals[key] += 1
        return ordinal

    def _remember(self, index: int, give: Callable[[], None]) -> None:
        heapq.heappush(self._recorded, (index, give))

    def _give(self, live: LiveTask, outcome: TaskCompleted | TaskFailed) -> None:
        if live.future.done():
            return
        self.loop.set_time_ms(outcome.at)
        self.given[live.task_id] = len(self.given)
        if isinstance(outcome, TaskCompleted):
            live.future.set_result(self.value_of(outcome.output))
        else:
            live.future.set_exception(task_failure(live.call.name, outcome))

    def _end_call(self, live: LiveCall, outcome: CallEnded) -> None:
        if not live.future.done():
            self.loop.set_time_ms(outcome.at)
            live.future.set_result(outcome)

    def _end_wait(self, live: LiveWait, record: Received | WaitEnded) -> None:
        if live.future.done():
            return
        self.loop.set_time_ms(record.at)
        message = self._messages[record.seq] if isinstance(record, Received) else None
        if message is not None:
            self.waits.was_given(message)
            self.given[message.key] = len(self.given)
        live.future.set_result(message)

    def _fire(self, timer: DurableTimer, at: TimestampMs) -> None:
        self.loop.set_time_ms(at)
        timer.fire()

    def is_recorded(self, timer: DurableTimer) -> bool:
        """Whether the log knows that this timer was started."""
        return ("timer", timer_key(timer.branch), timer.ordinal) in self._memory.waits

    def _look_up_timers(self) -> None:
        for timer in self.loop.timers:
            if timer.number not in self._seen_timers:
                self._seen_timers.add(timer.number)
                self._look_up(timer)

    def _look_up(self, timer: DurableTimer) -> None:
        recorded = self._memory.waits.get(("timer", timer_key(timer.branch), timer.ordinal))
        if recorded is not None and (ended := recorded.ended) is not None:
            at = ended.at
            self._remember(recorded.ended_index, lambda: self._fire(timer, at))

    def _done(self, live: LiveTask) -> None:
        """The workflow cancelled the call. One that was never written down leaves no trace."""
        if self.loop.dropping:
            return
        if live in self.new:
            self.new.remove(live)
            return
        if live in self.resumed:
            self.resumed.remove(live)
        if live.recorded is None or not live.recorded.is_cancelled:
            self.cancelled.append(live)
