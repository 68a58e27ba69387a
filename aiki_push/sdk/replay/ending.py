"""How a segment ends by what its workflow returned or raised."""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from aiki_push.domain.errors import NotSerializable, PayloadTooLarge
from aiki_push.domain.retry import RetryStrategy, is_retryable, retry_delay_ms
from aiki_push.domain.run_states import Cause, SelfCause
from aiki_push.domain.values import Inline, Json, TimestampMs
from aiki_push.ports.api.checkpoints import Complete, Fail, Retry
from aiki_push.sdk.failures import TaskFailed
from aiki_push.sdk.replay.failure_cause import cause_of, leaves_of
from aiki_push.sdk.replay.recorded_errors import record_error


@dataclass(frozen=True, slots=True)
class Attempt:
    """Which attempt of the workflow this is, counted from 1, and the strategy that says whether there is another."""

    number: int
    retry: RetryStrategy

    def next_at(self, error: BaseException, now: TimestampMs, jitter: float) -> TimestampMs | None:
        """When the next attempt begins after `error`; None where there is none."""
        if not is_retryable(self.retry, error) or any(_is_final(leaf) for leaf in leaves_of(error)):
            return None
        delay_ms = retry_delay_ms(self.retry, self.number, jitter)
        return None if delay_ms is None else TimestampMs(now + delay_ms)


def _is_final(error: BaseException) -> bool:
    """Whether the workflow would only fail again: its values do not fit, or a task said that nothing is to be tried again."""
    return isinstance(error, NotSerializable | PayloadTooLarge) or (isinstance(error, TaskFailed) and error.is_final)


def result_of(
    main: asyncio.Task[object],
    encode: Callable[[object], Json],
    given: Mapping[str, int],
    next_attempt_at: Callable[[BaseException], TimestampMs | None],
) -> Complete | Fail | Retry:
    """The end of a workflow whose main branch is done. `given` are the outcomes it was given, task ids to their order."""
    if main.cancelled():
        return failure(asyncio.CancelledError("the workflow cancelled itself"))
    error = main.exception()
    if error is not None:
        cause, at = cause_of(error, given), next_attempt_at(error)
        return failure(error, cause) if at is None else Retry(cause=cause, error=record_error(error), next_attempt_at=at)
    try:
        return Complete(output=Inline(value=encode(main.result())))
    except (NotSerializable, PayloadTooLarge) as fault:
        return failure(fault)


def failure(error: BaseException, cause: Cause | None = None) -> Fail:
    """The end of a run by `error`, which came from the workflow itself unless another cause is given."""
    return Fail(cause=cause or SelfCause(), error=record_error(error))
