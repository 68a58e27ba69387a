"""The world outside of random workflows: what every execution saw of them, and what their handlers did."""

import asyncio
from asyncio import AbstractEventLoop
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count
from typing import TypeAlias

from aiki_push import Run
from aiki_push.domain.values import Json

Seen: TypeAlias = tuple[str, str, Json, int]
"""Branch, what it did, what came back, and the workflow's time then."""


@dataclass
class Trace:
    """What one execution saw; of that the first `durable` things were in the log before it wrote the last time."""

    attempt: int
    seen: list[Seen] = field(default_factory=list)
    durable: int = 0


@dataclass
class World:
    """Outside the durable world: nothing here is ever replayed. `extra_s` is how long a handler takes beside its work."""

    extra_s: Callable[[], float] = lambda: 0.0
    runs: dict[str, str] = field(default_factory=dict)
    """Names of programs, and their runs."""
    attempts: dict[str, int] = field(default_factory=dict)
    traces: defaultdict[str, list[Trace]] = field(default_factory=lambda: defaultdict(list))
    done: set[int] = field(default_factory=set)
    """The numbers of the executions of handlers that returned."""
    loops: list[AbstractEventLoop] = field(default_factory=list)
    writer: dict[str, object] = field(default_factory=dict)
    """The execution that wrote last for a run."""
    trace_of: dict[object, Trace] = field(default_factory=dict)
    executions: "count[int]" = field(default_factory=count)

    def begin(self, run: Run, name: str) -> Trace:
        trace = Trace(run.attempt)
        self.runs[name] = run.id
        self.attempts[run.id] = run.attempt
        self.traces[run.id].append(trace)
        self.loops.append(asyncio.get_running_loop())
        self.trace_of[self.writer[run.id]] = trace
        return trace

    def wrote(self, run_id: str, execution: object) -> None:
        """What the execution's workflow has seen so far is in the log now."""
        self.writer[run_id] = execution
        if (trace := self.trace_of.get(execution)) is not None:
            trace.durable = len(trace.seen)
