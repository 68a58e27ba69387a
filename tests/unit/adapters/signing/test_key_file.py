import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from aiki_push.adapters.signing.key_file import KeyFile
from aiki_push.adapters.signing.key_set import KEY_CACHE_MS
from aiki_push.adapters.system import SystemEntropy
from aiki_push.domain.errors import SettingsError
from aiki_push.domain.values import DurationMs, TimestampMs


class SetClock:
    """Stands still until it is set."""

    def __init__(self) -> None:
        self.at = TimestampMs(1_800_000_000_000)

    def now(self) -> TimestampMs:
        return self.at

    def monotonic_ms(self) -> float:
        return float(self.at)

    def sleep(self, duration_ms: DurationMs) -> None:
        self.at = TimestampMs(self.at + duration_ms)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "signing-keys.json"


@pytest.fixture
def clock() -> SetClock:
    return SetClock()


@pytest.fixture
def keys(path: Path, clock: SetClock) -> KeyFile:
    return KeyFile(path, clock, SystemEntropy())


@contextmanager
def umask(mask: int) -> Iterator[None]:
    before = os.umask(mask)
    try:
        yield
    finally:
        os.umask(before)


def files_in(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_keys_live_from_init_through_rotation_to_retirement(keys: KeyFile, clock: SetClock) -> None:
    first = keys.init()
    assert keys.read().public_keys() == (first,)

    second = keys.rotate()
    assert keys.read().public_keys() == (second, first)

    clock.sleep(DurationMs(KEY_CACHE_MS + 1))
    assert keys.retire() == (first,)
    assert keys.read().public_keys() == (second,)


def test_every_key_is_a_new_one(keys: KeyFile) -> None:
    assert len({keys.init(), keys.rotate(), keys.rotate()}) == 3


def test_times_of_the_clock_are_kept(keys: KeyFile, clock: SetClock) -> None:
    keys.init()
    clock.at = TimestampMs(clock.at + 5)
    keys.rotate()

    read = keys.read()

    assert (read.active.created_at, read.retiring[0].created_at, read.retiring[0].retiring_since) == (
        clock.at,
        clock.at - 5,
        clock.at,
    )


def test_only_its_owner_can_read_the_file_whatever_the_umask(keys: KeyFile, path: Path) -> None:
    with umask(0):
        keys.init()
        modes = [path.stat().st_mode & 0o777]
        path.chmod(0o644)
        keys.rotate()
        modes.append(path.stat().st_mode & 0o777)

    assert modes == [0o600, 0o600]


def test_init_leaves_an_existing_file_as_it_is(keys: KeyFile, path: Path) -> None:
    path.write_bytes(b"precious")

    with pytest.raises(SettingsError, match="signing-keys.json exists. Replace the key in it with `aiki-push keys rotate`"):
        keys.init()

    assert files_in(path.parent) == {path.name: b"precious"}


@pytest.mark.parametrize("change", [KeyFile.rotate, KeyFile.retire])
def test_a_damaged_file_is_refused_and_left_as_it_is(change: Callable[[KeyFile], object], keys: KeyFile, path: Path) -> None:
    path.write_bytes(b'{"version":1}')

    with pytest.raises(SettingsError, match="signing-keys.json are damaged, or of a newer release. active: Field required"):
        change(keys)

    assert files_in(path.parent) == {path.name: b'{"version":1}'}


def test_a_refused_retirement_changes_nothing(keys: KeyFile, path: Path) -> None:
    keys.init()
    keys.rotate()
    before = files_in(path.parent)

    with pytest.raises(SettingsError, match="too recent"):
        keys.retire()

    assert files_in(path.parent) == before


def test_of_two_changes_at_once_the_second_is_refused(keys: KeyFile, path: Path) -> None:
    keys.init()
    (path.parent / "signing-keys.json.new").write_bytes(b"the other's")
    before = files_in(path.parent)

    with pytest.raises(SettingsError, match="signing-keys.json.new exists: another change is in progress, or one was cut short"):
        keys.rotate()

    assert files_in(path.parent) == before


def test_a_change_begins_with_what_the_file_holds_once_nobody_else_can_change_it(path: Path, clock: SetClock) -> None:
    class EntropyThatMeetsAnotherChange(SystemEntropy):
        """Another process tries to rotate at the moment a key is made."""

        def token(self, size: int) -> bytes:
            with pytest.raises(SettingsError, match="another change is in progress"):
                KeyFile(path, clock, SystemEntropy()).rotate()
            return super().token(size)

    keys = KeyFile(path, clock, EntropyThatMeetsAnotherChange())

    first, second = keys.init(), keys.rotate()

    assert keys.read().public_keys() == (second, first)


@pytest.mark.parametrize("use", [KeyFile.read, KeyFile.rotate, KeyFile.retire])
def test_a_missing_file_is_named_with_the_command_that_makes_it(
    use: Callable[[KeyFile], object], keys: KeyFile, path: Path
) -> None:
    with pytest.raises(SettingsError, match=r"no signing keys in .*signing-keys\.json\. Make them with `aiki-push keys init`"):
        use(keys)

    assert files_in(path.parent) == {}


def test_a_file_that_cannot_be_read_is_named_with_the_reason(keys: KeyFile, path: Path) -> None:
    path.mkdir()

    with pytest.raises(SettingsError, match=r"signing-keys\.json cannot be read: Is a directory"):
        keys.read()


def test_a_folder_that_cannot_be_written_is_named_with_the_reason(clock: SetClock, tmp_path: Path) -> None:
    keys = KeyFile(tmp_path / "missing" / "signing-keys.json", clock, SystemEntropy())

    with pytest.raises(SettingsError, match=r"missing/signing-keys\.json cannot be written: No such file or directory"):
        keys.init()
