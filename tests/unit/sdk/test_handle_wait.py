"""Waiting for the end of a run, from outside."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any

import pytest

from aiki_push import Cancelled, Completed, Failed, Finished, Handle, TimedOut
from aiki_push.adapters.system import SystemClock, SystemEntropy
from aiki_push.domain import run_states
from aiki_push.domain.errors import SettingsError
from aiki_push.domain.log_records import RecordedError
from aiki_push.domain.run_states import AnyState, Queued, SelfCause
from aiki_push.domain.values import Inline
from aiki_push.ports.api.runs import RunView, WaitRun
from aiki_push.sdk.client import Client
from aiki_push.sdk.types.json_type import JsonType
from aiki_push.testing import FaultyApi
from tests.unit.sdk.recording_api import RecordingApi, view

COMPLETED = run_states.Completed()
QUEUED = Queued(reason="new")
RUN_ID = view(QUEUED).id


def handle_of(api: Any, known: RunView | AnyState = QUEUED) -> Handle[int]:
    client = Client(lambda: api, clock=SystemClock(), entropy=SystemEntropy())
    return Handle(client, known if isinstance(known, RunView) else view(known), JsonType[int](int, at="order: output"))


@pytest.mark.parametrize("timeout", [None, timedelta(microseconds=1)])
@pytest.mark.parametrize(
    ("known", "state"),
    [
        (view(COMPLETED).model_copy(update={"output": Inline(value=5)}), Completed(5)),
        (
            view(run_states.Failed(cause=SelfCause())).model_copy(update={"error": RecordedError(name="E", message="m")}),
            Failed(SelfCause(), RecordedError(name="E", message="m")),
        ),
        (view(run_states.Cancelled()).model_copy(update={"explanation": "why"}), Cancelled("why")),
    ],
)
async def test_a_run_known_to_have_ended_is_answered_without_asking(
    known: RunView, state: Completed[int] | Failed | Cancelled, timeout: timedelta | None
) -> None:
    api = RecordingApi()
    assert await handle_of(api, known).wait(timeout=timeout) == Finished(RUN_ID, state)
    assert api.called == []


async def test_the_end_that_the_server_tells_is_remembered_by_the_handle() -> None:
    api = RecordingApi(run_states.Cancelled())
    handle = handle_of(api)
    assert await handle.wait() == Finished(RUN_ID, Cancelled(None))
    assert handle.run == view(run_states.Cancelled())
    assert api.called == [WaitRun(run_id=RUN_ID, timeout_ms=20_000)]


def stuck(cut: list[str]) -> Callable[[object], Awaitable[None]]:
    """A hook that never ends, and notes that it was cancelled."""

    async def hook(_: object) -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cut.append("cancelled")
            raise

    return hook


async def test_a_request_that_the_server_does_not_answer_is_cut_at_the_deadline() -> None:
    api, cut = FaultyApi(RecordingApi(COMPLETED)), list[str]()
    api.before = stuck(cut)
    assert await handle_of(api).wait(timeout=timedelta(milliseconds=20)) == TimedOut()
    assert cut == ["cancelled"]


async def test_an_answer_that_comes_too_slowly_is_cut_at_the_deadline() -> None:
    api, cut = FaultyApi(RecordingApi(COMPLETED)), list[str]()
    api.after = stuck(cut)
    handle = handle_of(api)
    assert await handle.wait(timeout=timedelta(milliseconds=20)) == TimedOut()
    assert (cut, handle.run) == (["cancelled"], view(QUEUED))


async def test_a_server_that_answers_at_once_is_asked_again_until_the_deadline_and_never_to_hold_longer() -> None:
    api = RecordingApi()
    assert await handle_of(api).wait(timeout=timedelta(milliseconds=50)) == TimedOut()
    asked = [operation.timeout_ms for operation in api.called if isinstance(operation, WaitRun)]
    assert asked
    assert len(asked) == len(api.called)
    assert all(timeout_ms <= 50 for timeout_ms in asked)


async def test_without_a_timeout_it_asks_until_the_run_has_ended() -> None:
    api = RecordingApi()
    faulty = FaultyApi(api)

    async def ends(_: object) -> None:
        if len(faulty.called) == 2:
            api.state = run_states.Cancelled()

    faulty.before = ends
    assert await handle_of(faulty).wait() == Finished(RUN_ID, Cancelled(None))
    assert faulty.called == 2 * [WaitRun(run_id=RUN_ID, timeout_ms=20_000)]


async def test_a_timeout_of_the_connection_is_not_taken_for_the_deadline() -> None:
    api = FaultyApi(RecordingApi())

    async def fails(_: object) -> None:
        raise TimeoutError("the connection")

    api.before = fails
    with pytest.raises(TimeoutError, match="^the connection$"):
        await handle_of(api).wait(timeout=timedelta(minutes=5))


async def test_whoever_waits_can_be_cancelled() -> None:
    api, cut = FaultyApi(RecordingApi()), list[str]()
    api.before = stuck(cut)
    waiting = asyncio.create_task(handle_of(api).wait(timeout=timedelta(minutes=5)))
    while not api.called:
        await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert cut == ["cancelled"]


@pytest.mark.parametrize(
    ("timeout", "sentence"),
    [
        (timedelta(0), "timeout must be longer than zero"),
        (timedelta(seconds=-1), "timeout must be longer than zero"),
        (5, "timeout must be a timedelta, not int"),
    ],
)
async def test_a_timeout_that_is_no_length_of_time_is_refused(timeout: Any, sentence: str) -> None:
    api = RecordingApi()
    with pytest.raises(SettingsError) as refused:
        await handle_of(api).wait(timeout=timeout)
    assert (str(refused.value), api.called) == (sentence, [])
