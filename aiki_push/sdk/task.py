"""Tasks: the steps of a workflow that touch the world. Their results are recorded and never computed again."""

import contextvars
import inspect
import sys
from collections.abc import Callable, Coroutine
from copy import copy
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Generic, Literal, ParamSpec, Protocol, TypeVar, overload

from typing_extensions import TypeForm

from aiki_push.domain.canonical_json import NO_INPUT_HASH, input_hash
from aiki_push.domain.durations import duration_ms
from aiki_push.domain.retry import Never, RetryStrategy
from aiki_push.domain.values import DurationMs, Inline, Json, RunId
from aiki_push.sdk.arguments import check_arguments
from aiki_push.sdk.calls import Interrupted, TaskCall
from aiki_push.sdk.logger import TASK_LOGGER, RunLogger
from aiki_push.sdk.names import check_name
from aiki_push.sdk.options import check_retry, retry_of_task
from aiki_push.sdk.run import Run
from aiki_push.sdk.sizes import check_size
from aiki_push.sdk.types.allowed import JsonRule
from aiki_push.sdk.types.hints import handler_types
from aiki_push.sdk.types.json_type import JsonType
from aiki_push.sdk.types.restoring import CannotRestore

P = ParamSpec("P")
I = TypeVar("I")  # noqa: E741 - the input; the name is short because it stands in every signature
O = TypeVar("O")  # noqa: E741 - the output


@dataclass(frozen=True, slots=True)
class TaskInfo:
    """What a task's handler can ask about its own execution.

    `attempt` counts from 1. `idempotency_key` is the same for all attempts: give it to services that recognise repeated requests.
    """

    run_id: RunId
    task_id: str
    task: str
    attempt: int

    @property
    def idempotency_key(self) -> str:
        """The same text for every attempt and every re-execution of this call, and for no other call."""
        return f"{self.run_id}-{self.task_id}"

    @property
    def logger(self) -> RunLogger:
        """A logger whose lines carry `aiki.run_id`, `aiki.task` and `aiki.attempt`."""
        return RunLogger(TASK_LOGGER, {"aiki.run_id": self.run_id, "aiki.task": self.task, "aiki.attempt": self.attempt})


current_task: contextvars.ContextVar[TaskInfo] = contextvars.ContextVar("aiki_push.current_task")


def task_info() -> TaskInfo:
    """About the task whose handler is running. Raises LookupError outside one."""
    info = current_task.get(None)
    if info is None:
        raise LookupError("task_info() is for the handlers of tasks, and none is running here")
    return info


class Task(Generic[P, O]):
    """A named step. Made by `task(name)`; called in a workflow by `await my_task.start(run, input)`."""

    def __init__(
        self,
        name: str,
        handler: Callable[..., object],
        input_type: JsonType[Any] | None,
        output_type: JsonType[O],
        retry: RetryStrategy,
        interrupted: Interrupted,
        expected_ms: DurationMs | None,
    ) -> None:
        self.name = name
        self.handler = handler
        self._input_type = input_type
        self._inputs = 0 if input_type is None else 1
        self._is_coroutine = inspect.iscoroutinefunction(handler)
        self._output_type = output_type
        self._retry = retry
        self._interrupted: Interrupted = interrupted
        self._expected_ms = expected_ms

    def __repr__(self) -> str:
        return f"Task({self.name})"

    def with_(self, path: Literal["retry"], value: RetryStrategy, /) -> "Task[P, O]":
        """A copy that is tried again in another way. The same calls: what is recorded of the original counts for it too.

        Raises SettingsError for another path or value.
        """
        changed = copy(self)
        changed._retry = retry_of_task(path, value, of=self.name)
        return changed

    async def start(self, run: Run, /, *args: P.args, **kwargs: P.kwargs) -> O:
        """What the handler returns, from the log where it was recorded before.

        Raises TaskFailed (the handler raised and is not tried again), NotSerializable (the input is no plain JSON).
        """
        output = await run.calls.call_task(self._call(*args, **kwargs))
        try:
            return self._output_type.decode(output, at=f"{self.name}: output")
        except CannotRestore as error:
            run.calls.cannot_restore(str(error))
            raise

    def _call(self, *args: Any, **kwargs: Any) -> TaskCall:
        check_arguments(self.handler, args, kwargs, taken=self._inputs, of=self.name)
        if self._input_type is None:
            return self._task_call(None, NO_INPUT_HASH, self.handler)
        at = f"{self.name}: input"
        encoded, value = self._input_type.round_trip(args[0], at=at)
        check_size(encoded, at=at)
        digest = input_hash(self._input_type.key_value(value, at=at))
        return self._task_call(Inline(value=encoded), digest, lambda: self.handler(value))

    def _task_call(self, given: Inline | None, digest: str, invoke: Callable[[], object]) -> TaskCall:
        return TaskCall(
            name=self.name,
            input=given,
            input_hash=digest,
            is_coroutine=self._is_coroutine,
            invoke=invoke,
            encode=self._encode,
            retry=self._retry,
            interrupted=self._interrupted,
            expected_ms=self._expected_ms,
            context=contextvars.copy_context(),
        )

    def _encode(self, output: Any) -> Json:
        at = f"{self.name}: output"
        encoded, _ = self._output_type.round_trip(output, at=at)
        check_size(encoded, at=at)
        return encoded


class TaskDecorator(Protocol):
    """Makes a handler a task. The handler takes one input, or none, and is `async def` or a plain function, which runs in a thread."""

    @overload
    def __call__(self, handler: Callable[[I], Coroutine[Any, Any, O]], /) -> Task[[I], O]: ...
    @overload
    def __call__(self, handler: Callable[[], Coroutine[Any, Any, O]], /) -> Task[[], O]: ...
    @overload
    def __call__(self, handler: Callable[[I], O], /) -> Task[[I], O]: ...
    @overload
    def __call__(self, handler: Callable[[], O], /) -> Task[[], O]: ...


def task(
    name: str,
    *,
    retry: RetryStrategy | None = None,
    interrupted: Interrupted = "retry",
    expected_duration: timedelta | None = None,
    input: TypeForm[Any] | None = None,
    output: TypeForm[Any] | None = None,
    json: JsonRule = "strict",
) -> TaskDecorator:
    """Name a handler, so that its calls are recorded and replayed.

    `retry` says what happens when it raises; without it nothing is tried again. `interrupted`: an execution that was cut off by a
    crash is repeated ("retry"), or the task fails with OutcomeUnknown ("fail"), for effects that must never be repeated blindly.
    `expected_duration`: where an invocation has less time left than this, the task is not started in it but in the next one.
    `input` and `output` stand in for type hints. `json="typed"` also allows types that pydantic itself takes to JSON and back, like
    datetime and UUID.
    Raises NotSerializable and SettingsError for handlers that JSON cannot serve, naming the place.
    """
    check_name(name, what="task")
    strategy = Never() if retry is None else check_retry(retry, f"{name}: retry")
    expected_ms = None if expected_duration is None else duration_ms(expected_duration, name=f"{name}: expected_duration")
    names = sys._getframe(1).f_locals

    def decorate(handler: Callable[..., object]) -> Task[..., Any]:
        hints = handler_types(handler, drop_first=False, localns=names, input=input, output=output)
        return Task(
            name,
            handler,
            None if hints.input is None else JsonType(hints.input, at=f"{name}: input", json=json),
            JsonType(hints.output, at=f"{name}: output", json=json),
            strategy,
            interrupted,
            expected_ms,
        )

    return decorate
