import asyncio
import contextvars
import gc
import sys
from types import CoroutineType

import pytest

from aiki_push.domain.errors import NotDurable
from aiki_push.sdk.replay.loop import WorkflowLoop
from aiki_push.sdk.replay.turns import in_plain_callback
from tests.unit.sdk.replay.begun_workflows import begun


def test_a_workflow_goes_on_when_its_future_is_resolved() -> None:
    futures = []

    async def workflow() -> list[str]:
        answers = []
        for _ in range(2):
            futures.append(asyncio.get_running_loop().create_future())
            answers.append(await futures[-1])
        return answers

    loop, task = begun(workflow())
    futures[0].set_result("a")
    assert len(futures) == 1
    loop.run_until_idle()
    futures[1].set_result("b")
    loop.run_until_idle()
    assert task.result() == ["a", "b"]
    assert loop.violation is None


def test_the_tools_of_asyncio_work() -> None:
    async def produce(queue: asyncio.Queue[int], lock: asyncio.Semaphore, ready: asyncio.Event) -> None:
        for item in range(3):
            async with lock:
                await queue.put(item)
        ready.set()

    async def workflow() -> object:
        queue: asyncio.Queue[int] = asyncio.Queue(1)
        ready = asyncio.Event()
        async with asyncio.TaskGroup() as group:
            group.create_task(produce(queue, asyncio.Semaphore(1), ready))
            items = [await queue.get() for _ in range(3)]
        await asyncio.wait_for(ready.wait(), 5)
        condition = asyncio.Condition()
        async with condition, asyncio.timeout(1), asyncio.Lock():
            condition.notify_all()
        tasks = [asyncio.create_task(asyncio.sleep(0, n)) for n in range(3)]
        done, pending = await asyncio.wait(tasks)
        completed = [await task for task in asyncio.as_completed(tasks)]
        shielded = await asyncio.shield(asyncio.create_task(asyncio.sleep(0, "shielded")))
        return items, await asyncio.gather(*tasks), len(done), len(pending), completed, shielded

    loop, task = begun(workflow())
    assert task.result() == ([0, 1, 2], [0, 1, 2], 3, 0, [0, 1, 2], "shielded")
    assert (loop.violation, loop.unhandled, list(loop.timers)) == (None, [], [])


def test_a_branch_is_named_by_its_parent_and_its_creation_number() -> None:
    names: dict[str, tuple[str, str]] = {}

    async def branch(label: str, *children: str) -> None:
        task = asyncio.current_task()
        assert task is not None
        names[label] = (loop.branch, task.get_name())
        for child in children:
            await asyncio.create_task(branch(child))

    async def workflow() -> None:
        named = asyncio.create_task(branch("named"), name="mine")
        await asyncio.gather(branch("first", "first's first", "first's second"), branch("second"), named)

    loop = WorkflowLoop()
    loop.start(workflow())
    assert loop.branch == "0"
    loop.run_until_idle()
    assert names == {
        "named": ("0.1", "mine"),
        "first": ("0.2", "branch 0.2"),
        "first's first": ("0.2.1", "branch 0.2.1"),
        "first's second": ("0.2.2", "branch 0.2.2"),
        "second": ("0.3", "branch 0.3"),
    }


def test_a_task_created_by_a_plain_callback_is_a_branch_of_the_main_one() -> None:
    names = []

    async def branch() -> None:
        names.append(loop.branch)

    async def workflow() -> None:
        loop.call_soon(lambda: asyncio.ensure_future(branch()))
        await asyncio.create_task(branch())

    loop = WorkflowLoop()
    loop.start(workflow())
    loop.run_until_idle()
    assert names == ["0.1", "0.2"]


def test_the_context_given_to_start_and_create_task_is_the_one_that_they_run_in() -> None:
    variable = contextvars.ContextVar("variable", default="outside")
    main, branch = contextvars.Context(), contextvars.Context()
    branch.run(variable.set, "branch")

    async def look() -> str:
        return variable.get()

    async def workflow() -> tuple[str, str, str]:
        variable.set("main")
        return variable.get(), await asyncio.create_task(look()), await asyncio.create_task(look(), context=branch)

    loop = WorkflowLoop()
    task = loop.start(workflow(), context=main)
    loop.run_until_idle()
    assert task.result() == ("main", "main", "branch")
    assert (variable.get(), main[variable]) == ("outside", "main")


def test_where_branches_stand_names_the_innermost_code_of_the_user() -> None:
    async def confirm() -> None:
        await asyncio.Event().wait()

    async def workflow() -> None:
        finished = asyncio.create_task(asyncio.sleep(0))
        tasks = [asyncio.create_task(confirm()), asyncio.create_task(asyncio.sleep(1)), finished]
        await asyncio.gather(*tasks)

    async def outer() -> None:
        await workflow()

    loop, _ = begun(outer())
    name = "test_where_branches_stand_names_the_innermost_code_of_the_user.<locals>"
    first = confirm.__code__.co_firstlineno
    lines = loop.where_branches_stand().splitlines()
    assert lines[:2] == [
        f"branch 0: {name}.workflow (test_workflow_loop.py:{first + 6})",
        f"branch 0.2: {name}.confirm (test_workflow_loop.py:{first + 1})",
    ]
    assert lines[2].startswith("branch 0.3: sleep (tasks.py:")
    assert len(lines) == 3


def test_an_endless_loop_is_a_violation_and_the_step_ends() -> None:
    async def workflow() -> None:
        while True:
            await asyncio.sleep(0)

    loop, task = begun(workflow())
    assert isinstance(loop.violation, NotDurable)
    assert "keeps the loop busy" in str(loop.violation)
    assert "branch 0: test_an_endless_loop_is_a_violation_and_the_step_ends.<locals>.workflow (test_workflow_loop.py:" in str(
        loop.violation
    )
    assert not task.done()
    first = loop.violation
    loop.run_until_idle()
    assert loop.violation is first
    loop.drop()


def test_ninety_thousand_calls_in_a_step_are_no_violation() -> None:
    async def workflow() -> None:
        for _ in range(90_000):
            await asyncio.sleep(0)

    loop, task = begun(workflow())
    assert (task.done(), loop.violation) == (True, None)


def test_an_error_of_the_workflow_is_its_tasks() -> None:
    async def workflow() -> None:
        raise SystemExit(3)

    loop, task = begun(workflow())
    assert isinstance(task.exception(), SystemExit)
    assert asyncio.current_task(loop) is None


def test_a_keyboard_interrupt_ends_the_step() -> None:
    async def workflow() -> None:
        raise KeyboardInterrupt

    loop = WorkflowLoop()
    task = loop.start(workflow())
    with pytest.raises(KeyboardInterrupt):
        loop.run_until_idle()
    assert isinstance(task.exception(), KeyboardInterrupt)


def test_errors_that_nobody_looked_at_are_kept_in_order_and_not_printed(caplog: pytest.LogCaptureFixture) -> None:
    callback, background, future = (ValueError(name) for name in ("callback", "background", "future"))

    def fail(error: Exception) -> None:
        raise error

    async def failing() -> None:
        raise background

    async def workflow() -> None:
        asyncio.get_running_loop().call_soon(fail, callback)
        asyncio.create_task(failing())
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        asyncio.get_running_loop().create_future().set_exception(future)

    loop, _ = begun(workflow())
    assert loop.unhandled == [callback, background, future]
    assert caplog.records == []


def test_a_background_branch_that_nobody_holds_lives_on() -> None:
    lines = []

    async def background() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            lines.append("closed")

    async def workflow() -> None:
        asyncio.create_task(background())

    loop, task = begun(workflow())
    gc.collect()
    assert (task.done(), lines) == (True, [])
    assert loop.where_branches_stand().startswith("branch 0.1: ")
    loop.drop()
    assert lines == ["closed"]


@pytest.mark.parametrize("debug", [False, True])
def test_a_step_inside_an_ordinary_loop_leaves_it_as_it_was(debug: bool) -> None:
    seen = []

    async def workflow() -> None:
        seen.append((asyncio.get_running_loop(), asyncio.current_task()))
        await asyncio.sleep(1)

    def step() -> None:
        outside = asyncio.get_running_loop(), asyncio.current_task(), sys.get_asyncgen_hooks()
        loop = WorkflowLoop()
        task = loop.start(workflow())
        loop.run_until_idle()
        assert seen == [(loop, task)]
        assert outside == (asyncio.get_running_loop(), asyncio.current_task(), sys.get_asyncgen_hooks())
        assert (loop.get_debug(), loop.is_running(), asyncio.current_task(loop)) == (False, False, None)
        loop.timers[0].fire()
        loop.run_until_idle()
        assert task.done()
        loop.drop()
        assert outside == (asyncio.get_running_loop(), asyncio.current_task(), sys.get_asyncgen_hooks())

    asyncio.run(in_plain_callback(step), debug=debug)


def test_a_step_outside_any_loop_leaves_none_running() -> None:
    async def workflow() -> None:
        assert asyncio.get_running_loop().is_running()

    loop, task = begun(workflow())
    assert (task.result(), loop.is_running()) == (None, False)
    with pytest.raises(RuntimeError, match="no running event loop"):
        asyncio.get_running_loop()


def test_something_that_is_no_coroutine_is_refused_as_asyncio_does() -> None:
    async def workflow() -> None:
        asyncio.get_running_loop().create_task(3)  # type: ignore[arg-type]  # the mistake under test

    _, task = begun(workflow())
    with pytest.raises(TypeError, match="a coroutine was expected, got 3"):
        task.result()


def test_a_task_looks_like_one_over_the_users_coroutine() -> None:
    async def branch() -> None:
        await asyncio.sleep(1)

    async def workflow() -> None:
        await asyncio.create_task(branch(), name="mine")

    loop, task = begun(workflow())
    assert isinstance(task.get_coro(), CoroutineType)
    assert [frame.f_code.co_name for frame in task.get_stack()] == ["workflow"]
    assert "workflow() running at" in repr(task)
    loop.drop()
