import asyncio
import contextlib
import gc
import logging
import os
import subprocess
import sys
import warnings
import weakref
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import aiki_push
from aiki_push.domain.errors import Dropped
from aiki_push.sdk.replay.loop import WorkflowLoop

Lines = list[str]
Scenario = Callable[[Lines], Awaitable[object]]


def scenario(*expected: str) -> Callable[[Scenario], Scenario]:
    """Register a workflow that waits somewhere, with the lines that dropping it there gives."""

    def register(workflow: Scenario) -> Scenario:
        SCENARIOS[workflow.__name__] = workflow, list(expected)
        return workflow

    return register


SCENARIOS: dict[str, tuple[Scenario, Lines]] = {}


def durable() -> asyncio.Future[Any]:
    return asyncio.get_running_loop().create_future()


async def clean_up(lines: Lines, name: str) -> None:
    lines.append(f"clean up {name}")
    await durable()
    lines.append("never")


@scenario()
async def except_exception(lines: Lines) -> None:
    try:
        await durable()
    except Exception:  # noqa: BLE001 - the code under test
        lines.append("never")


@scenario("Dropped", "closed in branch 0")
async def except_base_exception(lines: Lines) -> None:
    try:
        await durable()
    except BaseException as error:  # noqa: BLE001 - the code under test
        lines.append(type(error).__name__)
    task = asyncio.current_task()
    lines.append(f"closed in {task.get_name() if task else 'no task'}")
    await durable()
    lines.append("never")


@scenario("Dropped")
async def except_dropped(lines: Lines) -> None:
    try:
        await durable()
    except Dropped as error:
        lines.append(type(error).__name__)
        raise ValueError from error


@scenario("outer")
async def finally_awaits(lines: Lines) -> None:
    try:
        try:
            await durable()
        finally:
            await asyncio.sleep(1)
            lines.append("never")
    finally:
        lines.append("outer")


@scenario("clean up waits", "clean up gathered", "clean up in group")
async def finally_uses_asyncio(lines: Lines) -> None:
    with contextlib.ExitStack() as ended:
        ended.callback(lambda: None)
        try:
            try:
                try:
                    await durable()
                finally:
                    lines.append("clean up waits")
                    await asyncio.wait_for(asyncio.shield(clean_up([], "shielded")), 5)
            finally:
                lines.append("clean up gathered")
                await asyncio.gather(clean_up([], "1"), clean_up([], "2"))
        finally:
            lines.append("clean up in group")
            async with asyncio.timeout(3), asyncio.TaskGroup() as group:
                group.create_task(clean_up([], "3"))
                await group.create_task(clean_up([], "4"))


@scenario("after")
async def suppress_everything(lines: Lines) -> None:
    with contextlib.suppress(BaseException):
        await durable()
    lines.append("after")
    await asyncio.sleep(0)
    lines.append("never")


@scenario("exit of Dropped", "exit of manager")
async def async_context_managers(lines: Lines) -> None:
    class Manager:
        async def __aenter__(self) -> None:
            await asyncio.sleep(0)

        async def __aexit__(self, kind: type[BaseException], *_: object) -> None:
            lines.append(f"exit of {kind.__name__}")
            await durable()
            lines.append("never")

    @contextlib.asynccontextmanager
    async def manager() -> AsyncIterator[None]:
        try:
            yield
        finally:
            lines.append("exit of manager")
            await asyncio.sleep(0)
            lines.append("never")

    async with manager(), Manager():
        await durable()


async def rows(lines: Lines, name: str, waits: bool) -> AsyncGenerator[int]:
    try:
        yield 1
        if waits:
            await durable()
        yield 2
    finally:
        lines.append(f"end of {name}")
        await durable()
        lines.append("never")


@scenario("end of inner", "end of outer", "end of held")
async def async_generators(lines: Lines) -> None:
    held = rows(lines, "held", waits=False)
    await anext(held)
    async for _ in rows(lines, "outer", waits=False):
        async for _ in rows(lines, "inner", waits=True):
            pass


@scenario("stubborn generator")
async def a_generator_that_refuses_to_end(lines: Lines) -> None:
    async def stubborn() -> AsyncGenerator[int]:
        future = durable()
        try:
            yield 1
        finally:
            lines.append("stubborn generator")
            while True:
                with contextlib.suppress(BaseException):
                    await future

    async for _ in stubborn():
        await durable()


@scenario("shielded", "waits for shielded")
async def shield(lines: Lines) -> None:
    async def inner() -> None:
        try:
            await durable()
        finally:
            lines.append("shielded")

    try:
        await asyncio.shield(asyncio.create_task(inner()))
    finally:
        lines.append("waits for shielded")


@scenario("0.1.1", "0.2", "0.1", "group")
async def task_group(lines: Lines) -> None:
    async def branch(name: str, *children: str) -> None:
        try:
            async with asyncio.TaskGroup() as group:
                for child in children:
                    group.create_task(branch(child))
                await durable()
        finally:
            lines.append(name)

    try:
        async with asyncio.timeout(9), asyncio.TaskGroup() as group:
            group.create_task(branch("0.1", "0.1.1"))
            group.create_task(branch("0.2"))
    finally:
        lines.append("group")


@scenario("timeout", "wait_for")
async def timeouts(lines: Lines) -> None:
    async def wait_for() -> None:
        try:
            await asyncio.wait_for(clean_up([], ""), 3)
        finally:
            lines.append("timeout")

    try:
        await asyncio.wait_for(wait_for(), 5)
    finally:
        lines.append("wait_for")


@scenario("gather", "wait", "as_completed")
async def groups(lines: Lines) -> None:
    def tasks() -> list[asyncio.Task[None]]:
        return [asyncio.create_task(clean_up([], "")) for _ in range(2)]

    async def complete() -> None:
        try:
            for completed in asyncio.as_completed(tasks(), timeout=3):
                await completed
        finally:
            lines.append("as_completed")

    async def wait() -> None:
        try:
            await asyncio.wait(tasks(), timeout=3)
        finally:
            lines.append("wait")

    async def gather() -> None:
        try:
            await asyncio.gather(*tasks(), return_exceptions=True)
        finally:
            lines.append("gather")

    await asyncio.gather(complete(), wait(), gather())


@scenario("child", "parent's clean-up", "parent")
async def a_parent_that_awaits_its_child_in_finally(lines: Lines) -> None:
    async def child() -> None:
        try:
            await durable()
        finally:
            lines.append("child")

    task = asyncio.create_task(child())
    try:
        await durable()
    finally:
        lines.append("parent's clean-up")
        try:
            await task
            lines.append("never")
        finally:
            lines.append("parent")


@scenario("stubborn", "not stubborn")
async def branches_that_refuse_to_end(lines: Lines) -> None:
    future = durable()

    async def for_ever(wait: Callable[[], Awaitable[object]]) -> None:
        while True:
            with contextlib.suppress(BaseException):
                await wait()

    async def step_on() -> None:
        with contextlib.suppress(BaseException):
            await future
        lines.append("stubborn")
        await for_ever(lambda: asyncio.sleep(0))

    tasks = [asyncio.create_task(for_ever(lambda: future)), asyncio.create_task(step_on())]
    tasks.append(asyncio.create_task(for_ever(lambda: tasks[0])))
    tasks.append(asyncio.create_task(for_ever(lambda: asyncio.wait_for(asyncio.create_task(clean_up([], "")), 3))))
    try:
        await asyncio.gather(*tasks)
    finally:
        lines.append("not stubborn")


@scenario("outside world", "still outside")
async def finally_reaches_outside(lines: Lines) -> None:
    try:
        await durable()
    finally:
        lines.append("outside world")
        try:
            await asyncio.to_thread(print)
        finally:
            lines.append("still outside")
            asyncio.get_running_loop().add_reader(0, print)
            await asyncio.open_connection("127.0.0.1", 1)
            lines.append("never")


@scenario("created", "given", "fails")
async def finally_does_things_without_awaiting(lines: Lines) -> None:
    async def begins(_: object) -> None:
        lines.append("never")

    given, children = durable(), []

    async def sibling() -> None:
        await given
        lines.append("never")

    children.append(asyncio.create_task(sibling()))
    try:
        await durable()
    finally:
        children.append(asyncio.create_task(begins(clean_up)))
        children.append(asyncio.ensure_future(begins(clean_up)))
        asyncio.get_running_loop().call_soon(lines.append, "never")
        asyncio.get_running_loop().call_later(0, lines.append, "never")
        asyncio.get_running_loop().call_later(1, lines.append, "never").cancel()
        lines.append("created")
        given.set_result(None)
        children[0].cancel()
        lines.append("given")
        durable().set_exception(ValueError("nobody looks"))
        lines.append("fails")
        raise ValueError


@scenario("Dropped", "Dropped")
async def finally_cancels_its_own_branch(lines: Lines) -> None:
    try:
        await durable()
    finally:
        for wait in (durable, lambda: asyncio.sleep(0)):
            task = asyncio.current_task()
            assert task is not None
            task.cancel()
            try:
                await wait()
            except BaseException as error:  # noqa: BLE001 - the code under test
                lines.append(type(error).__name__)


@scenario("queue", "lock", "condition")
async def synchronisation(lines: Lines) -> None:
    lock, condition = asyncio.Lock(), asyncio.Condition()
    await lock.acquire()

    async def hold() -> None:
        try:
            async with condition:
                await condition.wait()
        finally:
            lines.append("condition")

    async def acquire() -> None:
        try:
            async with lock:
                lines.append("never")
        finally:
            lines.append("lock")

    async def get() -> None:
        try:
            await asyncio.Queue[int]().get()
        finally:
            lines.append("queue")

    await asyncio.gather(hold(), acquire(), get())


@scenario()
async def failed_before(_: Lines) -> None:
    async def fail() -> None:
        raise ValueError("nobody looked yet")

    tasks = [asyncio.create_task(fail())]
    await asyncio.sleep(0)
    await durable()
    await tasks[0]


def drop(workflow: Scenario) -> tuple[Lines, WorkflowLoop]:
    """Run until idle, drop, and touch what is left: the lines that this gives."""
    lines: Lines = []

    async def main() -> None:
        await workflow(lines)

    loop = WorkflowLoop()
    task = loop.start(main())
    loop.run_until_idle()
    assert (lines, task.done()) == ([], False)
    loop.drop()
    loop.drop()
    loop.run_until_idle()
    return lines, loop


def drop_every_scenario() -> None:
    """For a process of its own: prints the lines of each scenario."""
    logging.basicConfig(level=logging.DEBUG)
    logging.getLogger("asyncio").setLevel(logging.INFO)
    for name, (workflow, _) in SCENARIOS.items():
        lines, loop = drop(workflow)
        print(name, lines, loop.violation, loop.unhandled)
        del loop
        gc.collect()


@pytest.fixture
def noise(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[object]]:
    """What Python logged, warned of or could not raise, also when it frees things."""
    heard: list[object] = []
    gc.collect()
    monkeypatch.setattr(sys, "unraisablehook", heard.append)
    with caplog.at_level(logging.DEBUG), warnings.catch_warnings():
        warnings.simplefilter("error")
        yield heard
        gc.collect()
    assert (heard, caplog.records) == ([], [])


@pytest.mark.usefixtures("noise")
@pytest.mark.parametrize("name", SCENARIOS)
def test_a_dropped_workflow_runs_its_clean_up_and_is_not_heard_of(name: str) -> None:
    workflow, expected = SCENARIOS[name]
    lines, loop = drop(workflow)
    observed = (list(lines), loop.violation, loop.unhandled, list(loop.timers), loop.where_branches_stand())
    assert observed == (expected, None, [], [], "")
    assert asyncio.all_tasks(loop) == set()
    del loop
    gc.collect()
    assert lines == expected


@pytest.mark.parametrize("implementation", ["c", "python"])
def test_a_process_that_dropped_everything_ends_without_a_sound(implementation: str) -> None:
    program = "import sys, runpy\n"
    program += "sys.modules['_asyncio'] = None\n" if implementation == "python" else ""
    program += f"runpy.run_path({__file__!r})['drop_every_scenario']()"
    ended = subprocess.run(
        [sys.executable, "-X", "dev", "-W", "error", "-c", program],
        env={**os.environ, "PYTHONPATH": str(Path(aiki_push.__file__).parents[1])},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    expected = [f"{name} {lines} None []" for name, (_, lines) in SCENARIOS.items()]
    assert (ended.returncode, ended.stderr, ended.stdout.splitlines()) == (0, "", expected)


@pytest.mark.usefixtures("noise")
def test_what_has_not_begun_yet_never_begins() -> None:
    async def workflow() -> None:
        raise AssertionError

    loop = WorkflowLoop()
    task = loop.start(workflow())
    loop.drop()
    loop.run_until_idle()
    assert (task.done(), loop.unhandled) == (True, [])


@pytest.mark.usefixtures("noise")
def test_what_was_ready_when_the_workflow_was_dropped_does_not_run() -> None:
    lines = []

    async def workflow() -> None:
        try:
            lines.append(await future)
        finally:
            lines.append("closed")

    loop = WorkflowLoop()
    future = loop.create_future()
    task = loop.start(workflow())
    loop.run_until_idle()
    future.set_result("given")
    loop.drop()
    assert (lines, task.done()) == (["closed"], True)


@pytest.mark.usefixtures("noise")
def test_an_outcome_that_comes_after_the_drop_changes_nothing() -> None:
    futures = []

    async def workflow() -> None:
        futures.extend([durable(), durable()])
        await asyncio.gather(*futures)

    loop = WorkflowLoop()
    loop.start(workflow())
    loop.run_until_idle()
    timer = loop.call_later(3, futures.clear)
    loop.drop()
    futures[0].set_result(1)
    futures[1].set_exception(ValueError())
    loop.set_time_ms(loop.now_at)
    timer.cancel()
    loop.run_until_idle()
    assert len(futures) == 2
    assert (loop.is_closed(), loop.violation, loop.unhandled) == (True, None, [])


@pytest.mark.usefixtures("noise")
def test_a_workflow_that_ended_is_dropped_with_its_background_branches() -> None:
    lines = []

    async def background() -> None:
        try:
            await durable()
        finally:
            lines.append("closed")

    async def workflow() -> int:
        asyncio.create_task(background())
        await asyncio.sleep(0)
        return 1

    loop = WorkflowLoop()
    task = loop.start(workflow())
    loop.run_until_idle()
    assert (task.result(), lines) == (1, [])
    loop.drop()
    assert lines == ["closed"]


@pytest.mark.usefixtures("noise")
def test_a_busy_workflow_can_be_dropped() -> None:
    async def workflow() -> None:
        while True:
            await asyncio.gather(asyncio.sleep(0), asyncio.sleep(0))

    loop = WorkflowLoop()
    task = loop.start(workflow())
    loop.run_until_idle()
    loop.drop()
    assert (task.done(), loop.where_branches_stand()) == (True, "")


@pytest.mark.usefixtures("noise")
def test_a_keyboard_interrupt_ends_the_drop() -> None:
    async def workflow() -> None:
        try:
            await durable()
        finally:
            raise KeyboardInterrupt

    loop = WorkflowLoop()
    loop.start(workflow())
    loop.run_until_idle()
    with pytest.raises(KeyboardInterrupt):
        loop.drop()
    loop.drop()


@pytest.mark.usefixtures("noise")
def test_a_dropped_workflow_is_freed() -> None:
    class Held:
        pass

    async def workflow(held: Held) -> None:
        async with asyncio.timeout(3), asyncio.TaskGroup() as group:
            group.create_task(asyncio.sleep(3, held))
            await asyncio.shield(durable())

    def freed() -> "weakref.ref[Held]":
        loop, held = WorkflowLoop(), Held()
        loop.start(workflow(held))
        loop.run_until_idle()
        loop.drop()
        return weakref.ref(held)

    held = freed()
    gc.collect()
    assert held() is None


def test_the_error_of_a_dropped_branch_is_no_exception() -> None:
    assert not issubclass(Dropped, Exception)


def test_tasks_that_ended_leave_nothing_for_the_garbage_collector() -> None:
    async def one(future: asyncio.Future[int]) -> int:
        return await future

    async def workflow() -> None:
        for _ in range(100):
            future = durable()
            task = asyncio.create_task(one(future))
            future.set_result(1)
            async with asyncio.timeout(3):
                await task

    loop = WorkflowLoop()
    gc.collect()
    gc.disable()
    main = loop.start(workflow())
    loop.run_until_idle()
    found = gc.collect()
    gc.enable()
    assert (main.done(), found) == (True, 0)
