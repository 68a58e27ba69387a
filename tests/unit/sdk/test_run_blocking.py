"""The door for code that is not asynchronous."""

import asyncio
import subprocess
import sys
import threading
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest

from aiki_push import run_blocking
from aiki_push.adapters.system import SystemClock, SystemEntropy
from aiki_push.domain.errors import AikiError, NotDurable, SettingsError
from aiki_push.sdk.client import Client
from aiki_push.sdk.replay.loop import WorkflowLoop
from tests.architecture.source_files import ROOT
from tests.unit.sdk.recording_api import RecordingApi


async def where() -> tuple[asyncio.AbstractEventLoop, str]:
    await asyncio.sleep(0)
    return asyncio.get_running_loop(), threading.current_thread().name


def test_every_call_from_every_thread_runs_on_one_loop_in_a_thread_of_its_own() -> None:
    loop, thread = run_blocking(where())
    with ThreadPoolExecutor(4) as threads:
        others = list(threads.map(lambda _: run_blocking(where()), range(8)))
    assert [*others, run_blocking(where())] == 9 * [(loop, thread)]
    assert thread != threading.current_thread().name


async def test_it_works_while_a_loop_runs_in_the_calling_thread() -> None:
    loop, _ = run_blocking(where())
    assert loop is not asyncio.get_running_loop()


def test_connections_belong_to_that_loop() -> None:
    apis: list[RecordingApi] = []

    def connect() -> RecordingApi:
        apis.append(RecordingApi())
        return apis[-1]

    client = Client(connect, clock=SystemClock(), entropy=SystemEntropy())

    async def api() -> object:
        return client.api

    first, second, other = run_blocking(api()), run_blocking(api()), asyncio.run(api())
    assert [apis.index(each) for each in (first, second, other) if isinstance(each, RecordingApi)] == [0, 0, 1]


class Ready:
    """An awaitable that is no coroutine."""

    def __await__(self) -> Generator[Any, None, int]:
        yield from ()
        return 5


class Refused(Exception):
    pass


def test_what_the_awaitable_raises_passes_as_it_is() -> None:
    error = Refused("no")

    async def refuses() -> None:
        raise error

    with pytest.raises(Refused) as raised:
        run_blocking(refuses())
    assert raised.value is error


def test_any_awaitable_is_awaited() -> None:
    assert run_blocking(Ready()) == 5


def test_what_takes_too_long_is_cancelled() -> None:
    cut = threading.Event()

    async def stuck() -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cut.set()
            raise

    with pytest.raises(TimeoutError, match=r"^it did not end within 0\.02 s and was cancelled$"):
        run_blocking(stuck(), timeout=timedelta(milliseconds=20))
    assert cut.wait(10)


def test_a_timeout_error_of_the_awaitable_is_its_own() -> None:
    async def times_out() -> None:
        raise TimeoutError("mine")

    with pytest.raises(TimeoutError, match="^mine$"):
        run_blocking(times_out(), timeout=timedelta(minutes=5))


def test_a_wrong_timeout_is_refused_and_nothing_is_run() -> None:
    wrong: Any = 5
    with pytest.raises(SettingsError, match="^timeout must be a timedelta, not int$"):
        run_blocking(where(), timeout=wrong)


def test_what_it_runs_must_not_call_it() -> None:
    async def inner() -> object:
        return run_blocking(where())

    with pytest.raises(AikiError) as refused:
        run_blocking(inner())
    assert str(refused.value) == (
        "run_blocking() was called by code that run_blocking() runs, and would wait for itself: use await"
    )


def test_a_workflow_must_not_call_it() -> None:
    loop = WorkflowLoop()

    async def workflow() -> None:
        run_blocking(where())

    main = loop.start(workflow())
    loop.run_until_idle()
    assert isinstance(main.exception(), NotDurable)
    assert str(loop.violation).startswith("run_blocking() was used in a workflow (test_run_blocking.py:")
    loop.drop()


PROGRAM = """
import asyncio, os, sys
from aiki_push import run_blocking

async def five():
    await asyncio.sleep(0)
    return 5

assert run_blocking(five()) == 5
child = os.fork()
if child == 0:
    sys.exit(run_blocking(five()))
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), run_blocking(five()))
"""


def test_a_forked_process_has_a_loop_of_its_own_and_nothing_is_said_at_exit() -> None:
    command = [sys.executable, "-X", "dev", "-W", "error", "-W", "ignore:.*fork:DeprecationWarning", "-c", PROGRAM]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, timeout=30, check=False)
    assert (done.stdout, done.stderr) == ("5 5\n", "")
