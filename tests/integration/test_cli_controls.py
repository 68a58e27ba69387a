"""`aiki-push runs pause | resume | cancel | wakeup` against a real server on loopback."""

from collections.abc import Iterator, Sequence

import pytest

from aiki_push.adapters.storage.memory.table import MemoryTable
from aiki_push.adapters.storage.table import Write
from aiki_push.domain.run_states import Cancelled, Queued
from aiki_push.domain.values import TimestampMs
from aiki_push.ports.api.runs import GetRun
from aiki_push.testing import FaultyTable
from tests.integration.controls import asleep, call, owned
from tests.integration.owners import start, started
from tests.integration.terminal import aiki_push, serving
from tests.local_system import LocalSystem

LATER = TimestampMs(10**15)


@pytest.fixture
def system() -> LocalSystem:
    return LocalSystem()


@pytest.fixture
def url(system: LocalSystem) -> Iterator[str]:
    with serving(system) as url:
        yield url


def runs(url: str, *arguments: str) -> tuple[int, str, str]:
    """Exit code, output and errors of the command."""
    return aiki_push("runs", *arguments, "--url", url)


def test_a_run_is_paused_and_resumed(system: LocalSystem, url: str) -> None:
    run_id = start(system)
    assert runs(url, "pause", run_id) == (0, f"run {run_id} is paused\n", "")
    assert runs(url, "resume", run_id) == (0, f"run {run_id} is queued\n", "")
    assert system.run(run_id).state == Queued(reason="resumption")


def test_a_run_is_cancelled_with_or_without_an_explanation(system: LocalSystem, url: str) -> None:
    for options, explanation in (([], None), (["--explanation", "ordered twice"], "ordered twice")):
        run_id = start(system)
        assert runs(url, "cancel", run_id, *options) == (0, f"run {run_id} is cancelled\n", "")
        view = call(system, GetRun(run_id=run_id))
        assert (view.state, view.explanation) == (Cancelled(), explanation)


def test_a_run_is_woken_from_the_sleep_that_is_named(system: LocalSystem, url: str) -> None:
    run_id = asleep(system, LATER)
    code, printed, errors = runs(url, "wakeup", run_id, "--sleep", "rest")
    assert (code, printed) == (1, "")
    assert errors.startswith(f"aiki-push: run {run_id} is sleeping and in no `run.sleep` named rest")
    assert runs(url, "wakeup", run_id, "--sleep", "nap") == (0, f"run {run_id} is queued\n", "")


def test_every_sleep_of_a_run_ends_where_none_is_named(system: LocalSystem, url: str) -> None:
    run_id = asleep(system, LATER)
    assert runs(url, "wakeup", run_id) == (0, f"run {run_id} is queued\n", "")


def test_a_run_whose_executor_is_too_busy_is_said_to_stop_soon() -> None:
    faulty = FaultyTable(MemoryTable())
    system = LocalSystem(faulty)
    owner = owned(system)
    run_id = owner.claimed.run.id

    def race(writes: Sequence[Write]) -> None:
        if len(writes) > 1:
            owner.append(started(f"task-{owner.position}"))

    faulty.before_write = race
    told = "its executor is to pause it at once"
    with serving(system) as url:
        assert runs(url, "pause", run_id) == (0, f"run {run_id} is running; {told}\n", "")
        assert runs(url, "show", run_id)[1].splitlines()[1] == told


def test_an_explanation_that_is_too_long_is_refused_by_name(system: LocalSystem, url: str) -> None:
    code, printed, errors = runs(url, "cancel", start(system), "--explanation", "x" * 1_025)
    assert (code, printed) == (2, "")
    assert errors == "aiki-push: explanation: String should have at most 1024 characters\n"
