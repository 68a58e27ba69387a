"""The workflow's side of a segment: its event loop, the calls that it makes, and what the log already knows of them."""

import asyncio
import heapq
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine

from aiki_push.domain.ids import derived_id
from aiki_push.domain.log_records import TaskCompleted, TaskFailed
from aiki_push.domain.values import Json, RunId, StoredValue, TimestampMs
from aiki_push.sdk.calls import TaskCall
from aiki_push.sdk.failures import task_failure
from aiki_push.sdk.replay.live_task import LiveTask
from aiki_push.sdk.replay.loop import WorkflowLoop
from aiki_push.sdk.replay.memory import CallKey, Memory, RecordedTask, task_key, timer_key
from aiki_push.sdk.replay.timers import DurableTimer

MAX_GIVEN_A_TURN = 1_000
"""Recorded outcomes given before the ordinary event loop gets a turn, so that a long replay does not starve it."""


class Replayer:
    """Runs the workflow until it is idle, giving it what is recorded in recorded order. Implements `Calls`.

    After a turn: `new` are the calls that the log does not know, `resumed` those that it knows without an outcome, `cancelled` those
    that the workflow cancelled since they were last taken, `unasked` the recorded calls that it has not made again.
    """

    def __init__(self, run_id: RunId, memory: Memory, value_of: Callable[[StoredValue], Json]) -> None:
        self.loop = WorkflowLoop()
        self.new: list[LiveTask] = []
        self.resumed: list[LiveTask] = []
        self.cancelled: list[LiveTask] = []
        self.unasked: dict[CallKey, RecordedTask] = dict(memory.tasks)
        self.stall_reason: str | None = None
        self.given: dict[str, int] = {}
        self._run_id = run_id
        self._memory = memory
        self._value_of = value_of
        self._ordinals: Counter[str] = Counter()
        self._recorded: list[tuple[int, Callable[[], None]]] = []  # a heap: where it stands in the log, and what gives it
        self._seen_timers: set[int] = set()
        self._repeats = bool(memory.tasks or memory.timers)
        self.loop.set_time_ms(memory.started_at)

    def start(self, workflow: Coroutine[object, object, object]) -> asyncio.Task[object]:
        """Begin the workflow; it runs in the next turn."""
        return self.loop.start(workflow)

    @property
    def missing(self) -> list[RecordedTask]:
        """The calls that the code must make as it did before, and has not made yet."""
        return [task for task in self.unasked.values() if task.is_required]

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

    def call_task(self, call: TaskCall) -> Awaitable[Json]:
        """A future for the task's outcome: the n-th call with this content takes what the log has of the n-th."""
        if self.loop.dropping:
            return self.loop.create_future()  # awaiting it raises Dropped
        key = task_key(call.name, call.input_hash)
        ordinal = self._ordinals[key]
        self._ordinals[key] += 1
        recorded = self.unasked.pop((key, ordinal), None)
        task_id = recorded.task_id if recorded else derived_id(self._run_id, key, str(ordinal))
        future: asyncio.Future[Json] = self.loop.create_future()
        live = LiveTask(call, task_id, ordinal, future, recorded, attempt=recorded.attempt if recorded else 1)
        if recorded is None:
            self.new.append(live)
        elif outcome := recorded.outcome:
            heapq.heappush(self._recorded, (recorded.outcome_index, lambda: self._give(live, outcome)))
        else:
            self.resumed.append(live)
        future.add_done_callback(lambda done: self._done(live) if done.cancelled() else None)
        return future

    def cannot_restore(self, reason: str) -> None:
        """A recorded value does not fit the code any more; the first reason counts."""
        self.stall_reason = self.stall_reason or reason

    def give(self, live: LiveTask, outcome: TaskCompleted | TaskFailed) -> None:
        """Let the workflow have `outcome`, which is news, at the time that it records."""
        self._repeats = False
        self._give(live, outcome)

    def fire(self, timer: DurableTimer, at: TimestampMs) -> None:
        """Let the workflow know that the timer's deadline has passed, which is news, at the time `at`."""
        self._repeats = False
        self._fire(timer, at)

    def _give(self, live: LiveTask, outcome: TaskCompleted | TaskFailed) -> None:
        if live.future.done():
            return
        self.loop.set_time_ms(outcome.at)
        self.given[live.task_id] = len(self.given)
        if isinstance(outcome, TaskCompleted):
            live.future.set_result(self._value_of(outcome.output))
        else:
            live.future.set_exception(task_failure(live.call.name, outcome))

    def _fire(self, timer: DurableTimer, at: TimestampMs) -> None:
        self.loop.set_time_ms(at)
        timer.fire()

    def is_recorded(self, timer: DurableTimer) -> bool:
        """Whether the log knows that this timer was started."""
        return (timer_key(timer.branch), timer.ordinal) in self._memory.timers

    def _look_up_timers(self) -> None:
        for timer in self.loop.timers:
            if timer.number not in self._seen_timers:
                self._seen_timers.add(timer.number)
                self._look_up(timer)

    def _look_up(self, timer: DurableTimer) -> None:
        recorded = self._memory.timers.get((timer_key(timer.branch), timer.ordinal))
        if recorded is not None and (ended := recorded.ended) is not None:
            at = ended.at
            heapq.heappush(self._recorded, (recorded.ended_index, lambda: self._fire(timer, at)))

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
