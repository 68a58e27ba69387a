"""`docs/openapi.json` is what the code makes of the catalogue now."""

from aiki_push.adapters.transport.openapi import openapi_text
from tests.architecture.source_files import ROOT


def test_the_file_is_the_document_of_this_code() -> None:
    is_current = (ROOT / "docs/openapi.json").read_text("utf-8") == openapi_text()
    assert is_current, "docs/openapi.json is not of this code: run `make openapi` and look at what changed"
