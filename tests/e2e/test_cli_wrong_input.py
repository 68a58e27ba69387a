"""Whatever is wrong, a person at a terminal is told in one line."""

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.command_line import Ended, aiki_push
from tests.e2e.processes import processes_in
from tests.e2e.system import start_server

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]

UNKNOWN = "01ARZ3NDEKTSV4RRFFQ69G5FAV"


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server for all tests of this file."""
    with processes_in(tmp_path_factory.mktemp("system")) as processes:
        yield start_server(processes).url


@pytest.mark.parametrize(
    ("arguments", "code", "told"),
    [
        (["runs", "show", UNKNOWN], 1, f"there is no run {UNKNOWN} in this namespace"),
        (["runs", "show", "nonsense"], 2, "run_id: "),
        (["runs", "start", "no name", "1"], 2, "workflow: "),
        (["runs", "start", "order", "one or two"], 2, "version: "),
        (["runs", "start", "order", "1", "--pool", "a/b"], 2, "options.pool: "),
        (["runs", "start", "order", "1", "--input", '{"a":'], 2, "--input cannot be read: "),
        (["runs", "start", "order", "1", "--input", "NaN"], 2, "--input cannot be read: "),
        (["runs", "start", "order", "1", "--input", "@nowhere.json"], 2, "--input cannot be read: "),
        (["runs", "start", "order", "1", "--url", "ftp://nowhere"], 2, "the server's URL should be like https://api.example.com"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_a_wrong_command_is_told_in_one_line_and_by_its_exit_code(url: str, arguments: list[str], code: int, told: str) -> None:
    ended = aiki_push(*arguments, AIKI_URL=url)

    assert (ended.code, ended.printed) == (code, "")
    [line] = ended.errors.splitlines()
    assert line.startswith(f"aiki-push: {told}")


def test_a_server_that_is_not_there_is_told_in_one_line() -> None:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))  # and not listening: the connection is refused
        ended = aiki_push("runs", "show", UNKNOWN, "--url", f"http://127.0.0.1:{bound.getsockname()[1]}")

    assert (ended.code, ended.printed) == (1, "")
    [line] = ended.errors.splitlines()
    assert line.startswith(f"aiki-push: GET /v1/runs/{UNKNOWN} at 127.0.0.1 gave no answer (ConnectError: ")


def test_a_port_that_is_taken_is_told_in_one_line(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        ended = aiki_push("dev", "--port", str(port), "--store", "memory", "--home", str(tmp_path))

    told = f"aiki-push: port {port} of 127.0.0.1 cannot be used (Address already in use); choose another with --port\n"
    assert ended == Ended(2, "", told)


@pytest.mark.parametrize(
    ("name", "value", "told"),
    [
        ("AIKI_DUE_SHARDS", "many", "AIKI_DUE_SHARDS is 'many' and should be a whole number from 1 to 256"),
        ("AIKI_DUE_SHARD", "1", "AIKI_DUE_SHARD is not a setting; the nearest is AIKI_DUE_SHARDS"),
        ("AIKI_NAMESPACE", "a#b", "AIKI_NAMESPACE is not valid and should be 1 to 64 letters, digits, `.`, `_` or `-`"),
    ],
)
def test_a_wrong_setting_is_told_in_one_line(tmp_path: Path, name: str, value: str, told: str) -> None:
    ended = aiki_push("dev", "--port", "0", "--store", "memory", "--home", str(tmp_path), **{name: value})

    assert ended == Ended(2, "", f"aiki-push: {told}\n")


def test_keys_that_are_damaged_are_told_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "signing-keys.json").write_text('{"version":1,"active":{"secret":"whsk_of-mine"}}')

    ended = aiki_push("dev", "--port", "0", "--store", "memory", "--home", str(tmp_path))

    assert (ended.code, ended.printed) == (2, "")
    [line] = ended.errors.splitlines()
    assert line.startswith(f"aiki-push: The signing keys in {tmp_path / 'signing-keys.json'} are damaged")
    assert "of-mine" not in line


def test_a_home_that_is_no_folder_is_told_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    told = f"aiki-push: the folder {tmp_path / 'file'} cannot be made (File exists); choose another\n"
    assert aiki_push("dev", "--port", "0", "--store", "memory", "--home", str(tmp_path / "file")) == Ended(2, "", told)
    assert aiki_push("keys", "init", "--file", str(tmp_path / "file" / "keys.json")) == Ended(2, "", told)


def test_keys_are_made_once_shown_rotated_and_not_retired_too_early(tmp_path: Path) -> None:
    file = str(tmp_path / "new" / "keys.json")

    first = aiki_push("keys", "init", "--file", file)
    again = aiki_push("keys", "init", "--file", file)
    second = aiki_push("keys", "rotate", "--file", file)
    shown = aiki_push("keys", "show", "--file", file)
    retired = aiki_push("keys", "retire", "--file", file)

    assert (first.code, first.errors, first.printed[:5]) == (0, "", "whpk_")
    assert again == Ended(2, "", f"aiki-push: {file} exists. Replace the key in it with `aiki-push keys rotate`.\n")
    assert (second.code, second.errors) == (0, "")
    assert shown == Ended(0, second.printed + first.printed, "")
    assert (retired.code, retired.printed) == (2, "")
    assert retired.errors.startswith("aiki-push: The last rotation is too recent")
