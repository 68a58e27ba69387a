import asyncio
import concurrent.futures
import gc
import inspect
import signal
import socket
import sys
import threading
from collections.abc import AsyncGenerator, Callable
from typing import Any

import pytest

from aiki_push.domain.errors import NotDurable
from aiki_push.sdk.replay.loop import WorkflowLoop
from aiki_push.sdk.replay.outside_world import MAX_REFUSALS
from tests.unit.sdk.replay.begun_workflows import begun

HERE = "test_workflow_loop_outside_world.py"


async def use_asyncio(function: Callable[..., Any], *args: Any) -> None:
    await function(*args)


@pytest.mark.parametrize(
    ("function", "args", "name"),
    [
        (asyncio.to_thread, (print,), "asyncio.to_thread()"),
        (asyncio.open_connection, ("127.0.0.1", 1), "asyncio.open_connection()"),
        (asyncio.start_server, (print, "127.0.0.1", 0), "asyncio.start_server()"),
        (asyncio.create_subprocess_exec, ("true",), "asyncio.create_subprocess_exec()"),
        (asyncio.create_subprocess_shell, ("true",), "asyncio.create_subprocess_shell()"),
    ],
)
def test_functions_of_asyncio_that_reach_outside_are_refused_by_name(function: Any, args: tuple[Any, ...], name: str) -> None:
    loop, task = begun(use_asyncio(function, *args))
    with pytest.raises(NotDurable) as refused:
        task.result()
    assert loop.violation is refused.value
    line = inspect.getsourcelines(use_asyncio)[1] + 1
    fix = "A replay could not repeat it: do this in a task."
    assert str(refused.value) == f"{name} was used in a workflow ({HERE}:{line}, branch 0). {fix}"


async def use_loop(method: str, *args: Any) -> None:
    await getattr(asyncio.get_running_loop(), method)(*args)


@pytest.mark.parametrize(
    ("method", "args"),
    [
        ("run_in_executor", (None, print)),
        ("call_soon_threadsafe", (print,)),
        ("getaddrinfo", ("localhost", 80)),
        ("sock_connect", (socket.socket, ("localhost", 80))),
        ("add_signal_handler", (signal.SIGUSR1, print)),
        ("add_reader", (0, print)),
        ("run_until_complete", (None,)),
        ("run_forever", ()),
        ("stop", ()),
        ("close", ()),
        ("shutdown_default_executor", ()),
        ("set_default_executor", (None,)),
        ("set_task_factory", (None,)),
        ("set_debug", (True,)),
    ],
)
def test_methods_of_the_loop_that_reach_outside_are_refused_by_name(method: str, args: tuple[Any, ...]) -> None:
    loop, task = begun(use_loop(method, *args))
    with pytest.raises(
        NotDurable, match=rf"^loop\.{method}\(\) was used in a workflow \({HERE}:\d+, branch 0\)\. .*do this in a task"
    ):
        task.result()
    assert loop.violation is task.exception()


def test_every_public_method_of_an_event_loop_is_there_or_refused() -> None:
    interface = {name for name in vars(asyncio.AbstractEventLoop) if not name.startswith("_")}
    ours = {name for kind in WorkflowLoop.__mro__[:-2] for name in vars(kind)}
    assert interface - ours == set()


def test_the_first_violation_stays_even_where_it_is_caught() -> None:
    async def branch() -> None:
        await asyncio.to_thread(print)

    async def workflow() -> str:
        await asyncio.gather(asyncio.create_task(branch()), return_exceptions=True)
        try:
            await asyncio.open_connection("localhost", 80)
        except NotDurable:
            return "caught"
        return "not refused"

    loop, task = begun(workflow())
    assert task.result() == "caught"
    assert str(loop.violation).startswith("asyncio.to_thread() ")
    assert "branch 0.1)" in str(loop.violation)


def test_a_loop_that_swallows_every_refusal_comes_to_a_stand() -> None:
    attempts = []

    async def workflow() -> None:
        while True:
            try:
                await asyncio.to_thread(print)
            except Exception as error:  # noqa: BLE001 - as careless users do
                attempts.append(error)

    loop, task = begun(workflow())
    assert (len(attempts), task.done()) == (MAX_REFUSALS, False)
    assert loop.violation is attempts[0]
    loop.drop()


def test_a_future_of_a_thread_pool_is_refused_before_it_is_done() -> None:
    future: concurrent.futures.Future[int] = concurrent.futures.Future()

    async def workflow() -> None:
        await asyncio.wrap_future(future)

    loop, task = begun(workflow())
    with pytest.raises(NotDurable, match=r"^asyncio\.wrap_future\(\) was used"):
        task.result()
    future.set_result(1)
    assert loop.violation is task.exception()


def in_a_thread(function: Callable[[], object]) -> list[NotDurable]:
    """The violation that the function met in a thread of its own, if it met one."""
    errors = []

    def call() -> None:
        try:
            function()
        except NotDurable as error:
            errors.append(error)

    thread = threading.Thread(target=call)
    thread.start()
    thread.join()
    return errors


@pytest.mark.parametrize("how", ["set_result", "call_soon", "call_soon_threadsafe", "run_coroutine_threadsafe"])
def test_a_thread_that_touches_the_loop_is_a_violation_until_the_workflow_is_dropped(how: str) -> None:
    futures: list[asyncio.Future[None]] = []

    async def wait() -> None:
        futures.append(asyncio.get_running_loop().create_future())
        await futures[-1]

    async def workflow() -> None:
        await asyncio.gather(wait(), wait())

    loop, task = begun(workflow())

    def touch() -> None:
        coroutine = asyncio.sleep(0)
        calls: dict[str, Callable[[], object]] = {
            "set_result": lambda: futures.pop().set_result(None),
            "call_soon": lambda: loop.call_soon(print),
            "call_soon_threadsafe": lambda: loop.call_soon_threadsafe(print),
            "run_coroutine_threadsafe": lambda: asyncio.run_coroutine_threadsafe(coroutine, loop),
        }
        try:
            calls[how]()
        finally:
            coroutine.close()

    assert in_a_thread(touch) == [loop.violation]
    assert f"({HERE}:" in str(loop.violation)
    loop.run_until_idle()
    assert not task.done()
    loop.drop()
    assert in_a_thread(touch) == []


def test_awaiting_a_future_of_another_loop_is_refused() -> None:
    other = asyncio.new_event_loop()
    future: asyncio.Future[None] = other.create_future()

    async def workflow() -> None:
        await future

    loop, task = begun(workflow())
    line = inspect.getsourcelines(workflow)[1] + 1
    with pytest.raises(NotDurable) as refused:
        task.result()
    assert loop.violation is refused.value
    name = "test_awaiting_a_future_of_another_loop_is_refused.<locals>.workflow"
    assert str(refused.value) == (
        f"Branch 0 awaits something of another event loop ({name} ({HERE}:{line})), "
        "which a replay could not repeat. Do this in a task."
    )
    other.close()


def test_waiting_for_a_future_of_another_loop_is_refused() -> None:
    other = asyncio.new_event_loop()

    async def workflow() -> None:
        await asyncio.wait([other.create_future()])

    loop, task = begun(workflow())
    with pytest.raises(NotDurable, match=r"^asyncio\.wait\(\) on a future of another event loop was used"):
        task.result()
    assert loop.violation is task.exception()
    other.close()


def test_an_ordinary_runtime_error_is_left_as_it_is() -> None:
    error = RuntimeError("no violation")

    async def workflow() -> None:
        future = asyncio.get_running_loop().create_future()
        asyncio.get_running_loop().call_soon(future.set_exception, error)
        await future

    loop, task = begun(workflow())
    assert (task.exception(), loop.violation) == (error, None)


async def numbers(ended: list[str]) -> AsyncGenerator[int]:
    try:
        for number in range(3):
            yield number
            await asyncio.sleep(0)
    finally:
        ended.append("ended")


def test_an_async_generator_used_to_its_end_is_fine() -> None:
    ended: list[str] = []

    async def workflow() -> list[int]:
        return [number async for number in numbers(ended)]

    loop, task = begun(workflow())
    assert (task.result(), ended, loop.violation) == ([0, 1, 2], ["ended"], None)


def test_an_async_generator_of_a_workflow_is_hidden_from_the_ordinary_loop() -> None:
    seen: list[object] = []

    async def workflow() -> list[int]:
        return [number async for number in numbers([])]

    outer = sys.get_asyncgen_hooks()
    sys.set_asyncgen_hooks(firstiter=seen.append, finalizer=seen.append)
    try:
        _, task = begun(workflow())
    finally:
        sys.set_asyncgen_hooks(*outer)
    assert (task.result(), seen) == ([0, 1, 2], [])


def test_an_async_generator_left_early_is_a_violation_and_makes_no_noise(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    noise: list[object] = []
    monkeypatch.setattr(sys, "unraisablehook", noise.append)
    ended: list[str] = []

    async def workflow() -> None:
        async for _ in numbers(ended):
            break

    loop, task = begun(workflow())
    gc.collect()
    assert task.result() is None
    assert str(loop.violation) == (
        "The async generator numbers was left before its end, so its clean-up would run whenever Python frees it. "
        "Use it in `async with contextlib.aclosing(...)`."
    )
    assert (ended, noise, caplog.records) == ([], [], [])


def test_an_async_generator_that_the_garbage_collector_finds_in_another_thread_is_a_violation() -> None:
    async def workflow() -> None:
        generator = numbers([])
        await anext(generator)
        cycle: list[Any] = [generator]
        cycle.append(cycle)

    gc.disable()
    loop, _ = begun(workflow())
    assert loop.violation is None
    thread = threading.Thread(target=gc.collect)
    thread.start()
    thread.join()
    gc.enable()
    assert "numbers was left before its end" in str(loop.violation)
