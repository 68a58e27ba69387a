"""`aiki-push events send` against a real server on loopback."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from aiki_push.domain.values import Json
from tests.integration.terminal import aiki_push, serving
from tests.integration.waiting_runs import inbox, parked_on, run_in, wait
from tests.local_system import LocalSystem


@pytest.fixture
def system() -> LocalSystem:
    return LocalSystem()


@pytest.fixture
def url(system: LocalSystem) -> Iterator[str]:
    with serving(system) as url:
        yield url


def send(url: str, *arguments: str) -> tuple[int, str, str]:
    """Exit code, output and errors of the command."""
    return aiki_push("events", "send", *arguments, "--url", url)


def received(system: LocalSystem, run_id: str) -> list[tuple[str, bool, Json]]:
    """Name, whether it has data, and the data of each event in the run's inbox."""
    messages = inbox(system, system.run(run_id).id)
    return [(one.key, one.data is not None, getattr(one.data, "value", None)) for one in messages]


def test_an_event_wakes_the_run_that_waits_for_it(system: LocalSystem, url: str) -> None:
    run_id = parked_on(system, wait("event", "paid"))

    assert send(url, run_id, "paid", "--data", '{"cents": 1250}') == (0, f"event paid was delivered to run {run_id}\n", "")

    assert received(system, run_id) == [("paid", True, {"cents": 1250})]
    assert system.run(run_id).state.status == "queued"


def test_data_is_json_or_a_file_with_json_and_none_is_not_null(system: LocalSystem, url: str, tmp_path: Path) -> None:
    (tmp_path / "data.json").write_text('["é"]')
    run_id = run_in(system, "queued")

    for options in ([], ["--data", "null"], ["--data", "-1"], ["--data", f"@{tmp_path / 'data.json'}"]):
        assert send(url, run_id, "told", *options)[0] == 0

    assert received(system, run_id) == [
        ("told", False, None),
        ("told", True, None),
        ("told", True, -1),
        ("told", True, ["é"]),
    ]


def test_an_event_sent_again_with_its_reference_is_there_once_and_without_one_twice(system: LocalSystem, url: str) -> None:
    run_id = run_in(system, "queued")

    for options in (["--reference", "invoice 7"], ["--reference", "invoice 7"], [], []):
        assert send(url, run_id, "paid", *options) == (0, f"event paid was delivered to run {run_id}\n", "")

    assert [name for name, _, _ in received(system, run_id)] == ["paid"] * 3


def test_a_run_that_has_ended_takes_no_event_and_the_command_fails(system: LocalSystem, url: str) -> None:
    run_id = run_in(system, "completed")

    assert send(url, run_id, "paid") == (1, "", f"aiki-push: run {run_id} has ended: it takes no more events\n")
    assert received(system, run_id) == []


def test_a_run_that_is_not_there_is_told_in_one_line(url: str) -> None:
    unknown = "01ARZ3NDEKTSV4RRFFQ69G5FAV"
    code, printed, errors = send(url, unknown, "paid")
    assert (code, printed) == (1, "")
    assert errors.startswith(f"aiki-push: there is no run {unknown} in this namespace")


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["paid", "--data", '{"cents":'], "--data cannot be read: --data is not JSON: "),
        (["paid", "--data", ""], "--data cannot be read: --data is not JSON: "),
        (["paid", "--data", "NaN"], "--data cannot be read: --data is not JSON: it has no number NaN"),
        (["paid", "--data", '{"cents": [-Infinity]}'], "--data cannot be read: --data is not JSON: it has no number -Infinity"),
        (["paid", "--data", "9007199254740993"], "--data cannot be read: --data is an integer beyond ±2^53"),
        (["paid", "--data", "@nowhere.json"], "--data cannot be read: [Errno 2] No such file or directory: 'nowhere.json'"),
        (["no name"], "event: "),
        (["paid", "--reference", ""], "reference: "),
        (["paid", "--reference", "x" * 257], "reference: "),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_a_wrong_event_is_told_in_one_line_that_names_what_is_wrong_and_is_not_sent(
    system: LocalSystem, url: str, arguments: list[str], told: str
) -> None:
    run_id = run_in(system, "queued")

    code, printed, errors = send(url, run_id, *arguments)

    assert (code, printed) == (2, "")
    [line] = errors.splitlines()
    assert line.startswith(f"aiki-push: {told}")
    assert received(system, run_id) == []
