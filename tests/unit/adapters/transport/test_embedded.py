import asyncio
import threading
from collections.abc import Callable
from typing import Any

import pytest

from aiki_push.adapters.transport.embedded import EmbeddedApi
from aiki_push.domain.errors import RevisionConflict
from aiki_push.ports.api.checkpoints import AppendCheckpoint
from aiki_push.ports.api.operation import Operation
from aiki_push.ports.api.runs import GetRun, StartRun, WaitRun
from tests.unit.adapters.transport.sample_service import PATIENCE_S, SampleService, raising
from tests.unit.adapters.transport.sample_values import RUN, RUN_ID
from tests.unit.adapters.transport.samples import SAMPLES


def perform(service: SampleService, operation: Operation[Any], **options: Any) -> Any:
    async def main() -> Any:
        api = EmbeddedApi(service, "blue", **options)
        try:
            return await api.call(operation)
        finally:
            await api.close()

    return asyncio.run(main())


@pytest.mark.parametrize("inline", [True, False])
@pytest.mark.parametrize(("operation", "answer"), SAMPLES.values(), ids=SAMPLES)
def test_an_operation_and_its_answer_arrive_as_they_were(operation: Operation[Any], answer: object, inline: bool) -> None:
    service = SampleService(answer)
    assert repr(perform(service, operation, inline=inline)) == repr(answer)
    assert repr(service.calls) == repr([("blue", operation)])
    assert service.calls[0][1].model_fields_set == operation.model_fields_set


@pytest.mark.parametrize("inline", [True, False])
def test_a_call_on_another_run_without_a_value_arrives_without_one(inline: bool) -> None:
    operation = SAMPLES["append_checkpoint with calls"][0]
    service = SampleService()
    perform(service, operation, inline=inline)
    received = service.calls[0][1]
    assert isinstance(operation, AppendCheckpoint)
    assert isinstance(received, AppendCheckpoint)
    assert [call.model_fields_set & {"input", "data"} for call in received.calls] == [
        call.model_fields_set & {"input", "data"} for call in operation.calls
    ]


@pytest.mark.parametrize("inline", [True, False])
def test_the_server_does_not_see_what_its_caller_later_does_to_a_value(inline: bool) -> None:
    sent = {"list": [1]}
    service = SampleService(RUN)
    perform(service, StartRun(workflow="order", version="1", input=sent), inline=inline)
    sent["list"].append(3)
    assert service.calls[0][1].model_dump()["input"] == {"list": [1]}


@pytest.mark.parametrize(
    ("operation", "inline", "is_elsewhere"),
    [
        (GetRun(run_id=RUN_ID), False, True),
        (GetRun(run_id=RUN_ID), True, False),
        (WaitRun(run_id=RUN_ID), False, True),
        (WaitRun(run_id=RUN_ID), True, True),
    ],
)
def test_only_what_may_wait_leaves_the_event_loop_of_an_inline_api(
    operation: Operation[Any], inline: bool, is_elsewhere: bool
) -> None:
    threads: list[int] = []

    def answer(_operation: Operation[Any]) -> object:
        threads.append(threading.get_ident())
        return RUN

    perform(SampleService(answer), operation, inline=inline)
    assert [thread != threading.get_ident() for thread in threads] == [is_elsewhere]


@pytest.mark.parametrize("inline", [True, False])
def test_calls_are_served_while_every_waiting_thread_is_taken(inline: bool) -> None:
    leave = threading.Event()

    def answer(operation: Operation[Any]) -> object:
        if isinstance(operation, WaitRun):
            leave.wait(PATIENCE_S)
        return RUN

    async def main() -> tuple[object, object]:
        api = EmbeddedApi(SampleService(answer), "blue", threads=1, waiting_threads=1, inline=inline)
        waiting = asyncio.create_task(api.call(WaitRun(run_id=RUN_ID)))
        served = await api.call(GetRun(run_id=RUN_ID))
        leave.set()
        waited = await waiting
        await api.close()
        return served, waited

    assert asyncio.run(main()) == (RUN, RUN)


def test_an_inline_call_lets_others_run() -> None:
    async def main() -> list[str]:
        api = EmbeddedApi(SampleService(RUN), "blue", inline=True)
        order: list[str] = []

        async def note(name: str) -> None:
            order.append(name)

        other = asyncio.create_task(note("other"))
        await api.call(GetRun(run_id=RUN_ID))
        order.append("call")
        await other
        await api.close()
        return order

    assert asyncio.run(main()) == ["other", "call"]


@pytest.mark.parametrize("inline", [True, False])
@pytest.mark.parametrize("error", [RevisionConflict("now at 7", revision=7), ValueError("a fault")])
def test_what_the_service_raises_passes_unchanged(error: Exception, inline: bool) -> None:
    with pytest.raises(type(error)) as caught:
        perform(SampleService(raising(error)), GetRun(run_id=RUN_ID), inline=inline)
    assert caught.value is error


@pytest.mark.parametrize("inline", [True, False])
@pytest.mark.parametrize("operation", [GetRun(run_id=RUN_ID), WaitRun(run_id=RUN_ID)])
def test_a_closed_api_refuses_calls(operation: Operation[Any], inline: bool) -> None:
    service = SampleService(RUN)

    async def main() -> None:
        api = EmbeddedApi(service, "blue", inline=inline)
        await api.close()
        await api.close()
        await api.call(operation)

    with pytest.raises(RuntimeError, match="closed"):
        asyncio.run(main())
    assert service.calls == []


def test_closing_does_not_wait_for_a_long_poll() -> None:
    entered, leave = threading.Event(), threading.Event()

    def answer(_operation: Operation[Any]) -> object:
        entered.set()
        leave.wait(PATIENCE_S)
        return RUN

    async def main() -> Callable[[], object]:
        api = EmbeddedApi(SampleService(answer), "blue")
        waiting = asyncio.create_task(api.call(WaitRun(run_id=RUN_ID)))
        await asyncio.to_thread(entered.wait, PATIENCE_S)
        await api.close()
        leave.set()
        await waiting
        return waiting.result

    assert asyncio.run(main())() == RUN
