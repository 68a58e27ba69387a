import tomllib

import pytest

from aiki_push.adapters.transport.versions import API_VERSION, is_from_newer_client, version_text
from aiki_push.domain.errors import InvalidRequest, UnsupportedVersion
from tests.architecture.source_files import ROOT


def test_the_version_is_that_of_the_package() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert version_text(API_VERSION) == project["version"].rpartition(".")[0]


@pytest.mark.parametrize(
    ("sent", "is_newer"), [(None, False), ("2.5", False), ("2.4", False), ("2.6", True), ("2.30", True), ("2.05", False)]
)
def test_a_close_client_is_understood(sent: str | None, is_newer: bool) -> None:
    assert is_from_newer_client(sent, own=(2, 5)) is is_newer


@pytest.mark.parametrize(("sent", "side"), [("2.3", "client"), ("1.5", "client"), ("1.9", "client"), ("3.0", "server")])
def test_a_distant_client_is_told_who_is_to_upgrade(sent: str, side: str) -> None:
    message = f"the client is of version {sent}, the server of 2.5: upgrade the {side}"
    with pytest.raises(UnsupportedVersion, match=f"^{message}$"):
        is_from_newer_client(sent, own=(2, 5))


@pytest.mark.parametrize("sent", ["", "2", "2.5.1", "v2.5", " 2.5", "2.5\n", "٢.٥", "2.99999", "-1.0"])
def test_a_header_that_is_no_version_is_refused(sent: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        is_from_newer_client(sent)
    assert caught.value.fields == {"errors": [{"field": "Aiki-Version", "message": "should be major.minor, like 1.4"}]}
