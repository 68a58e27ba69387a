"""What must hold of a random workflow, whatever went wrong."""

from collections import Counter
from collections.abc import Iterable, Sequence

from aiki_push.domain.log_records import (
    AnyRecord,
    CallEnded,
    Received,
    TaskCancelled,
    TaskCompleted,
    TaskFailed,
    TaskStarted,
    Transition,
    WaitEnded,
)
from aiki_push.domain.run_states import Stalled
from aiki_push.domain.values import Inline, Json
from tests.integration.random_world import Trace


def check_traces(traces: Iterable[Trace]) -> None:
    """Within an attempt, what was in the log is seen again, and in the same order."""
    attempt, known = 0, list[object]()
    for trace in traces:
        if trace.attempt != attempt:
            attempt, known = trace.attempt, []
        common = min(len(known), len(trace.seen))
        assert trace.seen[:common] == known[:common], _difference(trace.seen, known)
        if trace.durable > len(known):
            known = list(trace.seen[: trace.durable])


def _number(output: Json) -> int:
    """Which execution of a handler gave this."""
    assert isinstance(output, dict)
    assert isinstance(output["execution"], int)
    return output["execution"]


def _difference(seen: Sequence[object], known: Sequence[object]) -> str:
    place = next(number for number, (one, other) in enumerate(zip(seen, known, strict=False)) if one != other)
    return f"after {place} things it saw {seen[place : place + 3]}, and before {known[place : place + 3]}"


def check_log(records: Sequence[AnyRecord], done: set[int]) -> None:
    """Nothing happened twice, nothing stalled, and what is recorded as done was done."""
    assert not [one for one in records if isinstance(one, Transition) and isinstance(one.state, Stalled)]
    taken = Counter(one.seq for one in records if isinstance(one, Received) and one.kind == "event")
    assert not [seq for seq, times in taken.items() if times > 1]
    completed, cancelled = set[str](), set[str]()
    executions: list[int] = []
    ended: set[object] = set()
    for one in records:
        if isinstance(one, Transition) and one.state.status == "awaiting_retry":
            ended, cancelled = set(), set()
        if isinstance(one, TaskStarted | TaskCompleted | TaskFailed):
            assert one.task_id not in completed | cancelled
        if isinstance(one, TaskCompleted):
            assert isinstance(one.output, Inline)
            executions.append(_number(one.output.value))
            completed.add(one.task_id)
        if isinstance(one, TaskCancelled):
            cancelled.add(one.task_id)
        if isinstance(one, Received | WaitEnded | CallEnded):
            assert (one.kind, one.key, one.ordinal) not in ended
            ended.add((one.kind, one.key, one.ordinal))
    assert len(executions) == len(set(executions))
    assert set(executions) <= done
