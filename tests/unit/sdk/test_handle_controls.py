"""Controlling a run through its handle."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from aiki_push import Handle
from aiki_push.domain.errors import SettingsError
from aiki_push.domain.run_states import Paused, Queued
from aiki_push.ports.api.controls import CancelRun, PauseRun, RequeueRun, ResumeRun, WakeUpRun
from aiki_push.ports.api.operation import Operation
from aiki_push.ports.api.runs import RunView
from aiki_push.sdk.types.json_type import JsonType
from tests.unit.sdk.recording_api import RecordingApi, view

RUN_ID = view(Queued(reason="new")).id


def handle_of(api: RecordingApi) -> Handle[int]:
    return Handle(api.client(), view(Queued(reason="new")), JsonType[int](int, at="order: output"))


Control = Callable[[Handle[int]], Awaitable[RunView]]
Made = Callable[..., Operation[RunView]]
CONTROLS: list[tuple[Control, Made, dict[str, str]]] = [
    (lambda handle: handle.pause(), PauseRun, {}),
    (lambda handle: handle.resume(), ResumeRun, {}),
    (lambda handle: handle.cancel(), CancelRun, {}),
    (lambda handle: handle.cancel("ordered twice"), CancelRun, {"explanation": "ordered twice"}),
    (lambda handle: handle.wakeup(), WakeUpRun, {}),
    (lambda handle: handle.wakeup("cooling-off"), WakeUpRun, {"sleep": "cooling-off"}),
    (lambda handle: handle.requeue(), RequeueRun, {}),
]


@pytest.mark.parametrize(("control", "operation", "fields"), CONTROLS)
async def test_each_call_is_one_operation_with_an_id_of_its_own_and_the_handle_keeps_the_answer(
    control: Control, operation: Made, fields: dict[str, str]
) -> None:
    api = RecordingApi(Paused())
    handle = handle_of(api)

    assert await control(handle) == handle.run == view(Paused())
    await control(handle)

    first, second = (vars(called)["operation_id"] for called in api.called)
    assert api.called == [operation(run_id=RUN_ID, operation_id=one, **fields) for one in (first, second)]
    assert first != second


@pytest.mark.parametrize("explanation", ["", "x" * 1_025, 7])
async def test_an_explanation_that_no_server_would_take_is_refused_here(explanation: Any) -> None:
    api = RecordingApi()
    with pytest.raises(SettingsError, match="explanation must be a str of 1 to 1024 characters, or None"):
        await handle_of(api).cancel(explanation)
    assert api.called == []


async def test_a_sleep_has_a_name_like_any_other() -> None:
    api = RecordingApi()
    with pytest.raises(SettingsError, match="'cooling off' cannot name a sleep"):
        await handle_of(api).wakeup("cooling off")
    assert api.called == []
