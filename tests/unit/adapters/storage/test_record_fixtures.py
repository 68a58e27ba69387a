"""What earlier releases stored is read by this one.

`tests/fixtures/records/<release>/` holds what that release wrote: records and states as JSON, items in DynamoDB's notation (`B`
in base64). Its files are never changed. A new type adds a file; a new format adds files beside the old ones.
"""

import json
from base64 import b64decode
from collections.abc import Mapping
from pathlib import Path
from typing import TypeAlias, get_args

import pytest
from pydantic import TypeAdapter

from aiki_push.adapters.storage.dynamodb.items import plain
from aiki_push.adapters.storage.formats import read
from aiki_push.adapters.storage.table import Item
from aiki_push.domain.inbox import Message, MessageKind
from aiki_push.domain.log_records import AnyRecord, KnownRecord, StoredRecord
from aiki_push.domain.run import Run
from aiki_push.domain.run_states import STATUSES, TERMINAL, AnyState, RunState
from aiki_push.ports.store import Found
from tests.unit.adapters.storage.authored_items import ITEMS
from tests.unit.adapters.storage.authored_records import RECORDS, STATES

FIXTURES = Path(__file__).parents[3] / "fixtures" / "records"

Authored: TypeAlias = Mapping[str, AnyRecord | RunState | Found]

AUTHORED: Mapping[str, Authored] = {"0.1.0": {**STATES, **RECORDS, **ITEMS}}

_STATE: TypeAdapter[RunState] = TypeAdapter(AnyState)
_RECORD: TypeAdapter[AnyRecord] = TypeAdapter(StoredRecord)


def read_fixture(path: Path) -> AnyRecord | RunState | Found:
    if path.name.startswith("state_"):
        return _STATE.validate_json(path.read_bytes())
    if path.name.startswith("record_"):
        return _RECORD.validate_json(path.read_bytes())
    return read(read_item(path))


def read_item(path: Path) -> Item:
    attributes = json.loads(path.read_text(encoding="utf-8"))
    return plain({name: {"B": b64decode(value["B"])} if "B" in value else value for name, value in attributes.items()})


@pytest.mark.parametrize(
    ("release", "name"),
    [(release, name) for release, authored in AUTHORED.items() for name in authored],
    ids=str,
)
def test_what_a_release_stored_is_read_as_it_was_authored(release: str, name: str) -> None:
    assert read_fixture(FIXTURES / release / f"{name}.json") == AUTHORED[release][name]


def test_every_file_has_its_model() -> None:
    files = {release.name: {path.stem for path in release.glob("*.json")} for release in FIXTURES.iterdir()}
    assert files == {release: set(authored) for release, authored in AUTHORED.items()}


def test_every_type_of_record_and_every_state_has_a_file() -> None:
    assert {type(record) for record in RECORDS.values()} == set(get_args(KnownRecord))
    assert {state.status for state in STATES.values()} == set(STATUSES)


def test_every_field_of_a_header_has_a_file_where_it_says_something() -> None:
    headers = [item for item in ITEMS.values() if isinstance(item, Run)]
    said = {
        name
        for name, field in Run.model_fields.items()
        if any(field.is_required() or getattr(header, name) != field.default for header in headers)
    }
    assert said == set(Run.model_fields) - {"v"}


def test_every_kind_of_message_and_of_ending_has_a_file() -> None:
    messages = [item for item in ITEMS.values() if isinstance(item, Message)]
    assert {message.kind for message in messages} == set(get_args(MessageKind))
    assert {message.ending.state.status for message in messages if message.ending} == TERMINAL
    assert any(message.ending is None for message in messages if message.kind == "child")


def test_one_of_the_files_is_compressed() -> None:
    assert isinstance(read_item(FIXTURES / "0.1.0" / "slot_compressed.json")["d"], bytes)
