"""Checking changed code against what runs did: a replay that executes nothing and writes nothing."""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from aiki_push.domain.errors import AikiError, SettingsError
from aiki_push.domain.inbox import Message
from aiki_push.domain.log_records import AnyRecord, RecordedError, Transition
from aiki_push.domain.run import RunOptions
from aiki_push.domain.run_states import Queued, Running
from aiki_push.domain.values import Json, RunId
from aiki_push.ports.api.checkpoints import Complete
from aiki_push.sdk.replay.divergence import Titled, explain
from aiki_push.sdk.replay.ending import result_of
from aiki_push.sdk.replay.memory import Memory
from aiki_push.sdk.replay.replayer import Replayer
from aiki_push.sdk.run import Run, RunInfo
from aiki_push.sdk.types.restoring import CannotRestore
from aiki_push.sdk.workflow_version import AnyWorkflowVersion
from aiki_push.testing.histories import ExportedHistory, messages_of, records_of, values_of

UNKNOWN_RUN = "0" * 26

Reason = Literal["diverged", "cannot_restore", "unknown_record", "not_durable", "raised"]


class DoesNotFit(AikiError):
    """The code cannot go on with the run. `reason` says why, and the message what to do.

    `diverged`, `cannot_restore` and `unknown_record` would stall the run. `not_durable` and `raised` would fail it, by an error that
    the history does not have.
    """

    def __init__(self, reason: Reason, explanation: str) -> None:
        super().__init__(explanation)
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Replayed:
    """How far code comes with a history that it fits.

    next_calls: what it calls next and the history does not have: names of tasks, and what is asked of other runs.
    open_calls: names of the history's tasks that have no outcome yet, and would be executed again.
    waits: what it waits for then, as kind and key, say `event payment-received`.
    unmade_calls: what the history has and the code did not call. Once it makes a new call, the run diverges.
    has_ended, output, error: whether the workflow ended, and what it returned (JSON), or raised as it did before.
    """

    next_calls: tuple[str, ...] = ()
    open_calls: tuple[str, ...] = ()
    waits: tuple[str, ...] = ()
    unmade_calls: tuple[str, ...] = ()
    has_ended: bool = False
    output: Json = None
    error: RecordedError | None = None


def replay(
    version: AnyWorkflowVersion,
    history: ExportedHistory,
    *,
    messages: Iterable[Message | Mapping[str, Any]] = (),
    values: Mapping[str, Json] | None = None,
    run_id: str = UNKNOWN_RUN,
    context: object = None,
) -> Replayed:
    """How far the code of `version` comes with the history of a run. No handler of a task is called, and nothing is written.

    `messages` are the run's inbox, where the workflow received any. `values` are those that are too large for the log, by their
    SHA-256. `run_id` matters to code that uses the run's id, `uuid` or `random`; `context` is its `run.context`.

    Raises DoesNotFit, SettingsError (the history cannot be read or lacks something; called by a coroutine).
    """
    _check_caller()
    records = records_of(history)
    inbox = messages_of(records, messages)
    value_of = values_of(records, inbox, values or {})
    memory = Memory.of(records)
    if memory.unknown is not None:
        raise DoesNotFit(
            "unknown_record", f"the history has a record of type {memory.unknown.type!r}, which a newer release wrote"
        )
    last = next((record for record in reversed(records) if isinstance(record, Transition)), None)
    attempt = last.attempts if last else 1
    replayer = Replayer(RunId(run_id), memory, value_of, attempt=attempt, messages=inbox)
    run = Run(RunInfo(RunId(run_id), version.name, version.version, attempt, RunOptions()), replayer, context)
    main = replayer.start(version.handler(run, *_input(version, None if memory.input is None else value_of(memory.input))))
    try:
        while replayer.turn():
            pass
        _check(replayer, is_done=main.done())
        return _replayed(version, replayer, main, _error_in(records))
    finally:
        replayer.loop.drop()


def _error_in(records: Sequence[AnyRecord]) -> RecordedError | None:
    """What the latest execution raised, whatever became of the run since: before its next attempt it may be paused or cancelled."""
    for record in reversed(records):
        if isinstance(record, Transition) and (record.error is not None or isinstance(record.state, Queued | Running)):
            return record.error
    return None


def _check_caller() -> None:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return
    raise SettingsError("replay() is called by a coroutine; call it from a plain function, it runs an event loop of its own")


def _input(version: AnyWorkflowVersion, value: Json) -> tuple[object, ...]:
    try:
        return () if version.input_type is None else (version.input_type.decode(value, at=f"{version.name}: input"),)
    except CannotRestore as error:
        raise DoesNotFit("cannot_restore", str(error)) from error


def _check(replayer: Replayer, *, is_done: bool) -> None:
    """As a segment judges, once the workflow is idle."""
    if replayer.stall_reason is not None:
        raise DoesNotFit("cannot_restore", replayer.stall_reason)
    if replayer.loop.violation is not None:
        raise DoesNotFit("not_durable", str(replayer.loop.violation)) from replayer.loop.violation
    new: list[Titled] = [*replayer.new, *replayer.new_calls]
    if not is_done and new and (missing := replayer.missing):
        raise DoesNotFit("diverged", explain(new, missing))


def _replayed(
    version: AnyWorkflowVersion, replayer: Replayer, main: asyncio.Task[object], known: RecordedError | None
) -> Replayed:
    unmade = tuple(call.title for call in replayer.missing)
    if not main.done():
        waits = (*(f"{wait.call.kind} {wait.call.key}" for wait in replayer.waits), *("timer" for _ in replayer.loop.timers))
        next_calls = (*(live.call.name for live in replayer.new), *(call.title for call in replayer.new_calls))
        return Replayed(next_calls, tuple(live.call.name for live in replayer.resumed), waits, unmade)
    end = result_of(main, version.encode_output, replayer.given, lambda _: None)
    if isinstance(end, Complete):
        return Replayed(unmade_calls=unmade, has_ended=True, output=end.output.value)
    if known is None or known.name != end.error.name:
        raised = None if main.cancelled() else main.exception()
        raise DoesNotFit(
            "raised", f"the workflow raises {end.error.name}, which the run did not: {end.error.message}"
        ) from raised
    return Replayed(unmade_calls=unmade, has_ended=True, error=end.error)
