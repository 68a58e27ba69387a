"""Starting runs and looking at them, at a terminal."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.command_line import Ended, aiki_push
from tests.e2e.processes import processes_in, until
from tests.e2e.system import system_in

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server with the endpoint A, for all tests of this file."""
    with processes_in(tmp_path_factory.mktemp("system")) as processes:

        async def start() -> str:
            async with system_in(processes) as system:
                await system.register(system.start_endpoint("A"))
                return system.server.url

        yield asyncio.run(start())


def cells(line: str) -> list[str]:
    """The columns of a row of the timeline."""
    return [cell.strip() for cell in line.strip("│ ").split("│")]


def show(url: str, run_id: str) -> list[str]:
    """The lines that `runs show` prints."""
    return aiki_push("runs", "show", run_id, "--url", url).printed.splitlines()


def test_a_run_that_is_waited_for_prints_its_id_and_its_output(url: str) -> None:
    ended = aiki_push("runs", "start", "three-steps", "1.0.0", "--wait", "--url", url)

    run_id, output = ended.printed.splitlines()
    assert ended == Ended(0, f'{run_id}\n["first by A","second by A","third by A"]\n', "")
    assert output
    assert len(run_id) == 26


def test_the_input_is_json_or_a_file_with_json_and_the_server_may_be_named_by_the_environment(url: str, tmp_path: Path) -> None:
    (tmp_path / "input.json").write_text("1")

    for given in ("1", f"@{tmp_path / 'input.json'}"):
        ended = aiki_push("runs", "start", "spins", "1.0.0", "--input", given, "--wait", AIKI_URL=url)
        assert (ended.code, ended.printed.splitlines()[1:], ended.errors) == (0, ['"spun"'], "")


def test_a_run_that_fails_gives_exit_code_1_and_one_line_that_says_why(url: str) -> None:
    ended = aiki_push("runs", "start", "fails", "1.0.0", "--wait", "--url", url)

    assert (ended.code, len(ended.printed.splitlines())) == (1, 1)
    assert ended.errors.startswith("failed: ")
    assert len(ended.errors.splitlines()) == 1
    assert "no such parcel" in ended.errors


def test_the_timeline_of_a_run_has_its_revisions_its_executors_and_its_tasks(url: str) -> None:
    run_id = aiki_push("runs", "start", "three-steps", "1.0.0", "--wait", "--url", url).printed.splitlines()[0]

    ended = aiki_push("runs", "show", run_id, "--url", url)

    assert (ended.code, ended.errors) == (0, "")
    first, *rest = ended.printed.splitlines()
    assert first == f"run {run_id}: three-steps 1.0.0 is completed at revision 2"
    assert [cells(line)[2:] for line in rest if line.startswith("│")] == [
        ["0", "", "no input"],
        ["0", "", "→ queued (new)"],
        ["1", "A", "→ running"],
        *(["1", "A", f"{task} {what}"] for task in ("first", "second", "third") for what in ("starts", "completed")),
        ["2", "A", "→ completed"],
    ]


def test_a_run_waits_for_an_event_that_is_sent_from_a_terminal(url: str) -> None:
    run_id = aiki_push("runs", "start", "expects", "1.0.0", "--input", "null", "--url", url).printed.strip()

    sent = aiki_push("events", "send", run_id, "told", "--data", '"hello"', "--reference", "greeting", "--url", url)

    assert sent == Ended(0, f"event told was delivered to run {run_id}\n", "")
    until(lambda: " is completed at revision " in show(url, run_id)[0], "the run's end")
    assert "takes message 1 (event told)" in [cells(line)[-1] for line in show(url, run_id)]
    again = aiki_push("events", "send", run_id, "told", "--data", '"hello"', "--url", url)
    assert again == Ended(1, "", f"aiki-push: run {run_id} has ended: it takes no more events\n")


def test_a_sleeping_run_is_paused_resumed_woken_and_cancelled_from_a_terminal(url: str) -> None:
    run_id = aiki_push("runs", "start", "rests", "1.0.0", "--input", "3600000", "--url", url).printed.strip()
    until(lambda: "is sleeping" in show(url, run_id)[0], "the run's nap")

    assert aiki_push("runs", "pause", run_id, "--url", url) == Ended(0, f"run {run_id} is paused\n", "")
    assert aiki_push("runs", "resume", run_id, "--url", url) == Ended(0, f"run {run_id} is sleeping\n", "")
    assert aiki_push("runs", "wakeup", run_id, "--sleep", "nap", "--url", url) == Ended(0, f"run {run_id} is queued\n", "")
    until(lambda: "waits (sleep rest)" in [cells(line)[-1] for line in show(url, run_id)], "the run's rest")
    assert aiki_push("runs", "cancel", run_id, "--url", url) == Ended(0, f"run {run_id} is cancelled\n", "")
    first, *rest = show(url, run_id)
    assert "is cancelled" in first
    assert [cells(line)[-1] for line in rest if "sleep" in line] == [
        *("waits (sleep nap)", "→ sleeping", "→ sleeping", "takes message 1 (sleep nap)"),
        *("waits (sleep rest)", "→ sleeping"),
    ]


def test_a_run_that_nobody_serves_says_so(url: str) -> None:
    started = aiki_push("runs", "start", "unheard-of", "1", "--url", url)
    run_id = started.printed.strip()
    assert started == Ended(0, f"{run_id}\n", "")

    ended = aiki_push("runs", "show", run_id, "--url", url)

    assert ended.code == 0
    assert f"run {run_id}: unheard-of 1 is queued at revision 0" in ended.printed
