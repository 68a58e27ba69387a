"""How a process ends whose settings are wrong."""

import pytest

from aiki_push.apps.environment import fail_readably
from aiki_push.domain.errors import SettingsError, StorageUnavailable


def test_wrong_settings_end_the_process_with_one_line_on_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended, fail_readably():
        raise SettingsError("AIKI_TABLE_NAME is missing\nand should be the name of a table")

    assert ended.value.code == 2
    shown = capsys.readouterr()
    assert (shown.out, shown.err) == ("", "aiki-push: AIKI_TABLE_NAME is missing and should be the name of a table\n")


def test_another_error_passes_as_it_is() -> None:
    with pytest.raises(StorageUnavailable, match="busy"), fail_readably():
        raise StorageUnavailable("busy")


def test_right_settings_change_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    with fail_readably():
        pass
    assert capsys.readouterr() == ("", "")
