"""How a segment ends by what its workflow returned or raised."""

import asyncio
from collections.abc import Callable, Mapping

from aiki_push.domain.errors import NotSerializable, PayloadTooLarge
from aiki_push.domain.run_states import Cause, SelfCause
from aiki_push.domain.values import Inline, Json
from aiki_push.ports.api.claims import Complete, Fail
from aiki_push.sdk.replay.failure_cause import cause_of
from aiki_push.sdk.replay.recorded_errors import record_error


def result_of(main: asyncio.Task[object], encode: Callable[[object], Json], given: Mapping[str, int]) -> Complete | Fail:
    """The end of a workflow whose main branch is done. `given` are the outcomes it was given, task ids to their order."""
    if main.cancelled():
        return failure(asyncio.CancelledError("the workflow cancelled itself"))
    error = main.exception()
    if error is not None:
        return failure(error, cause_of(error, given))
    try:
        return Complete(output=Inline(value=encode(main.result())))
    except (NotSerializable, PayloadTooLarge) as fault:
        return failure(fault)


def failure(error: BaseException, cause: Cause | None = None) -> Fail:
    """The end of a run by `error`, which came from the workflow itself unless another cause is given."""
    return Fail(cause=cause or SelfCause(), error=record_error(error))
