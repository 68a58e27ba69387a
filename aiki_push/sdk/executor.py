"""Executing runs: claim one, keep the claim, replay and go on, and say how the segment ended."""

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from math import inf

from aiki_push.domain.errors import ApiError, ServerUnreachable, SettingsError
from aiki_push.domain.ids import token_text
from aiki_push.domain.retry import Never
from aiki_push.domain.run_states import SelfCause
from aiki_push.domain.values import Json, RunId, TimestampMs
from aiki_push.ports.api.checkpoints import Ended, Fail, SegmentEnd, Stall
from aiki_push.ports.api.claims import Claimed, ClaimRun, Inbox, NotClaimed, ReleaseClaim
from aiki_push.sdk.client import Client
from aiki_push.sdk.outcomes import Outcome, outcome_of
from aiki_push.sdk.registry import Registry
from aiki_push.sdk.replay.claim_keeper import ClaimKeeper, ThreadKeeper
from aiki_push.sdk.replay.ending import Attempt
from aiki_push.sdk.replay.journal import AbandonedSegment, HandedBack, Journal, LostRun
from aiki_push.sdk.replay.log_reading import read_memory, read_whole
from aiki_push.sdk.replay.memory import Memory
from aiki_push.sdk.replay.recorded_errors import record_error
from aiki_push.sdk.replay.replayer import Replayer
from aiki_push.sdk.replay.segment import Segment, SegmentConfig
from aiki_push.sdk.run import Run, RunInfo
from aiki_push.sdk.types.restoring import CannotRestore
from aiki_push.sdk.workflow_version import AnyWorkflowVersion

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ExecutorConfig:
    """Times in milliseconds; see SegmentConfig for those that are there too.

    claim_refresh_interval_ms: how often a claim is refreshed; less than half the server's idle timeout, or nothing is executed.
    """

    claim_refresh_interval_ms: int = 30_000
    max_inline_wait_ms: int = 10
    max_interruptions: int = 5
    grace_period_ms: int = 5_000

    @property
    def segment(self) -> SegmentConfig:
        """The part that a segment needs."""
        return SegmentConfig(self.max_inline_wait_ms, self.max_interruptions, self.grace_period_ms)


@dataclass(frozen=True, slots=True)
class SegmentResult:
    """How an execution ended. `unsettled`: nobody knows yet; the claim goes stale and the run is recovered."""

    outcome: Outcome


class Executor:
    """Executes runs of the registry's workflow versions through a client.

    `name` is shown with the runs it holds; `keeper` keeps each claim alive.
    """

    def __init__(
        self,
        client: Client,
        registry: Registry,
        *,
        config: ExecutorConfig,
        name: str,
        keeper: type[ClaimKeeper] = ThreadKeeper,
    ) -> None:
        self._client = client
        self._registry = registry
        self._config = config
        self._name = name
        self._keeper = keeper
        self._unfit: SettingsError | None = None

    async def execute(self, run_id: str, *, revision: int | None, left_ms: float = inf) -> SegmentResult:
        """Claim the run, at `revision` where given, and execute it until its segment ends.

        The invocation ends after `left_ms`: what does not fit into that is handed back for the next one.

        Raises SettingsError (the refresh interval does not fit the server's idle timeout), ServerUnreachable and ApiError
        (the claim itself could not be had), and what the client's context factory raises: nothing was executed then, and the run
        is tried again once its claim has gone stale.
        """
        ends_at_ms = self._client.clock.monotonic_ms() + left_ms
        if self._unfit is not None:
            raise self._unfit  # claiming and releasing runs again and again would help nobody
        claim_id = token_text(self._client.entropy.token(15))
        claim = ClaimRun(run_id=RunId(run_id), claim_id=claim_id, executor=self._name, revision=revision)
        claimed = await self._client.api.call(claim)
        if isinstance(claimed, NotClaimed):
            return SegmentResult(claimed.reason)
        version = self._registry.find(claimed.run.workflow, claimed.run.version)
        if version is None or self._config.claim_refresh_interval_ms * 2 >= claimed.claim_idle_timeout_ms:
            return await self._release(claimed, version)
        return SegmentResult(await self._execute(claimed, version, ends_at_ms))

    async def _release(self, claimed: Claimed, version: AnyWorkflowVersion | None) -> SegmentResult:
        await self._client.api.call(ReleaseClaim(run_id=claimed.run.id, token=claimed.token))
        if version is None:
            _log.error("run %s of %s %s is not ours to execute", claimed.run.id, claimed.run.workflow, claimed.run.version)
            return SegmentResult("released")
        self._unfit = SettingsError(
            f"claim_refresh_interval_ms is {self._config.claim_refresh_interval_ms}; it must be less than half of the server's "
            f"claim_idle_timeout_ms, which is {claimed.claim_idle_timeout_ms}"
        )
        raise self._unfit

    async def _execute(self, claimed: Claimed, version: AnyWorkflowVersion, ends_at_ms: float) -> Outcome:
        loop = asyncio.get_running_loop()
        line = _Line()
        keeper = self._keeper(
            self._client.connect,
            claimed,
            interval_ms=self._config.claim_refresh_interval_ms,
            clock=self._client.clock,
            on_lost=lambda: _call_in(loop, line.lose),
            on_news=lambda news: _call_in(loop, lambda: line.hear(news)),
        )
        keeper.start()
        journal = Journal(self._client.api, claimed, self._client.entropy, keeper.is_alive)
        try:
            return await self._run(claimed, version, journal, line, ends_at_ms)
        except LostRun:
            return "lost"
        except HandedBack:
            return "yielded"
        except (AbandonedSegment, ServerUnreachable, ApiError) as error:
            _log.warning("run %s is abandoned: %s", claimed.run.id, error, extra={"aiki.run_id": claimed.run.id})
            return "unsettled"
        finally:
            keeper.stop()

    async def _run(
        self, claimed: Claimed, version: AnyWorkflowVersion, journal: Journal, line: "_Line", ends_at_ms: float
    ) -> Outcome:
        began_ms = self._client.clock.monotonic_ms()
        claimed = await read_whole(self._client.api, claimed)
        memory, values = await read_memory(journal, claimed)
        if memory.unknown is not None:
            explanation = f"the log has a record of type {memory.unknown.type!r}; a newer release wrote it: upgrade the executor"
            return await _end(claimed, journal, Stall(reason="unknown_record", explanation=explanation))
        attempt = claimed.run.attempts
        replayer = Replayer(claimed.run.id, memory, values, attempt=attempt, messages=claimed.messages)
        try:
            given = _input(version, memory, values)
        except CannotRestore as error:
            return await _end(claimed, journal, _bad_input(error, memory))
        info = _info(claimed)
        run = Run(info, replayer, await self._client.context_for(info))
        segment = Segment(
            claimed.run.id,
            replayer,
            journal,
            values,
            now=self._server_time(max(claimed.now, memory.last_at), began_ms),
            left_ms=lambda: ends_at_ms - self._client.clock.monotonic_ms(),
            clock=self._client.clock,
            entropy=self._client.entropy,
            config=self._config.segment,
            encode=version.encode_output,
            attempt=Attempt(attempt, claimed.run.options.retry or Never()),
            inbox_known_at=memory.claimed_at,
        )
        line.connect(segment)
        try:
            end = await segment.run(replayer.start(version.handler(run, *given)))
        except ApiError as error:
            # A write that can never succeed, such as the log's 50 001st slot: the run cannot go on, and says so.
            return await _end(claimed, journal, Fail(cause=SelfCause(), error=record_error(error)))
        return outcome_of(claimed, end, segment.status)

    def _server_time(self, claimed_at: int, began_ms: float) -> Callable[[], TimestampMs]:
        """The server's time at the claim, and on by this process's monotonic clock: clocks of executors do not matter."""
        clock = self._client.clock
        return lambda: TimestampMs(claimed_at + int(clock.monotonic_ms() - began_ms))


class _Line:
    """From a claim keeper to the segment, once there is one. Used on the segment's event loop."""

    def __init__(self) -> None:
        self._segment: Segment | None = None
        self._unheard: list[Inbox] = []
        self._is_lost = False

    def connect(self, segment: Segment) -> None:
        self._segment = segment
        for news in self._unheard:
            segment.hear(news)
        if self._is_lost:
            segment.lose()

    def lose(self) -> None:
        self._is_lost = True
        if self._segment is not None:
            self._segment.lose()

    def hear(self, news: Inbox) -> None:
        if self._segment is None:
            self._unheard.append(news)
        else:
            self._segment.hear(news)


async def _end(claimed: Claimed, journal: Journal, end: SegmentEnd) -> Outcome:
    try:
        answer = await journal.end(end)
    except ApiError as error:
        raise AbandonedSegment(str(error)) from error
    return outcome_of(claimed, end, answer.status if isinstance(answer, Ended) else None)


def _info(claimed: Claimed) -> RunInfo:
    run = claimed.run
    return RunInfo(id=run.id, workflow=run.workflow, version=run.version, attempt=run.attempts, options=run.options)


def _input(version: AnyWorkflowVersion, memory: Memory, value_of: Callable[..., Json]) -> tuple[object, ...]:
    if version.input_type is None:
        return ()
    value = None if memory.input is None else value_of(memory.input)
    return (version.input_type.decode(value, at=f"{version.name}: input"),)


def _bad_input(error: CannotRestore, memory: Memory) -> SegmentEnd:
    """An input that never fitted fails the run; one that has been worked on fitted earlier code, and waits for a fix."""
    if memory.has_worked:
        return Stall(reason="cannot_restore", explanation=str(error))
    return Fail(cause=SelfCause(), error=record_error(error))


def _call_in(loop: asyncio.AbstractEventLoop, function: Callable[[], None]) -> None:
    with suppress(RuntimeError):  # the loop has been closed: there is nobody left to tell
        loop.call_soon_threadsafe(function)
