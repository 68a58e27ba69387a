"""`docs/api.md` says of every operation what the catalogue says: method, path, role, fields, answers, errors; and of no other."""

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any, get_args

import pytest
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from aiki_push.domain.errors import API_ERRORS
from aiki_push.domain.inbox import Message
from aiki_push.domain.log_records import KnownRecord
from aiki_push.ports.api.calls import Call
from aiki_push.ports.api.catalogue import CATALOGUE
from aiki_push.ports.api.checkpoints import SegmentEnd
from aiki_push.ports.api.endpoints import EndpointView
from aiki_push.ports.api.operation import Operation
from aiki_push.ports.api.runs import RunView
from tests.architecture.source_files import ROOT

PAGE = (ROOT / "docs/api.md").read_text("utf-8")

SHARED_ANSWERS: dict[type[BaseModel], str] = {RunView: "A run", EndpointView: "An endpoint"}
"""Answers of several operations, by the heading of the section that has their fields."""

CODES = {error.__name__: code for code, error in API_ERRORS.items()}


def section(heading: str) -> str:
    """What stands between a heading and the next one, of whatever level."""
    found = re.search(rf"^##+ {re.escape(heading)}\n(.*?)(?=^##|\Z)", PAGE, re.M | re.S)
    assert found, f"docs/api.md has no section {heading!r}"
    return found[1]


def table(text: str, head: str) -> list[tuple[str, ...]]:
    """The rows of every table in `text` whose head row is `head`, as their cells."""
    bodies = re.findall(rf"^\| {re.escape(head)} \|\n\|[-|]+\|\n((?:\|.*\|\n)*)", text, re.M)
    return [tuple(cell.strip() for cell in line.strip("|").split(" | ")) for body in bodies for line in body.splitlines()]


def names_in(cell: str) -> list[str]:
    return re.findall(r"`(\w+)`", cell)


def default_of(field: FieldInfo) -> str:
    if field.is_required():
        return "required"
    if field.default is None:
        return "–"
    default = field.default.model_dump(mode="json") if isinstance(field.default, BaseModel) else field.default
    return f"`{json.dumps(default, separators=(',', ':'))}`"


def answers_of(operation: type[Operation[Any]]) -> list[type[BaseModel]]:
    """The model that an operation answers, or every one of the union."""
    answer = operation.answer._type  # TypeAdapter shows its type nowhere else
    members = get_args(get_args(answer)[0]) if get_args(answer) else (answer,)
    return [member for member in members if isinstance(member, type) and issubclass(member, BaseModel)]


def errors_named(operation: type[Operation[Any]]) -> Iterator[str]:
    """The codes of the errors that an operation's docstring names."""
    for name, code in CODES.items():
        if re.search(rf"\b{name}\b", operation.__doc__ or ""):
            yield code


def test_the_operations_are_those_of_the_catalogue_in_its_order() -> None:
    documented = [name for name in re.findall(r"^### (\w+)$", PAGE, re.M)]
    assert documented == [operation.operation for operation in CATALOGUE]


@pytest.mark.parametrize("operation", CATALOGUE, ids=lambda operation: operation.operation)
class TestAnOperation:
    def test_has_its_method_path_and_role(self, operation: type[Operation[Any]]) -> None:
        role = "for everyone" if operation.role == "none" else f"role {operation.role}"
        assert section(operation.operation).lstrip().startswith(f"`{operation.method} {operation.path}`, {role}. ")

    def test_has_its_fields_with_their_defaults(self, operation: type[Operation[Any]]) -> None:
        rows = table(section(operation.operation), "field | default | meaning")
        assert [row[:2] for row in rows] == [(f"`{name}`", default_of(field)) for name, field in operation.model_fields.items()]

    def test_has_its_answers_fields(self, operation: type[Operation[Any]]) -> None:
        text = section(operation.operation)
        answers = answers_of(operation)
        assert answers
        if answers[0] in SHARED_ANSWERS:
            heading = SHARED_ANSWERS[answers[0]]
            assert f"[{heading.lower()}](#{heading.lower().replace(' ', '-')})" in text
            text = section(heading)
        documented = {
            name for row in table(text, "answer | meaning") + table(text, "field | meaning") for name in names_in(row[0])
        }
        assert documented == {name for answer in answers for name in answer.model_fields}

    def test_has_the_errors_that_its_docstring_names(self, operation: type[Operation[Any]]) -> None:
        told = section(operation.operation).partition("Errors: ")[2]
        assert [code for code in errors_named(operation) if f"`{code}`" not in told] == []


def test_every_error_named_is_one() -> None:
    told = "".join(re.findall(r"Errors: (.*?)\n\n", PAGE, re.S))
    codes = set(re.findall(r"`([a-z]+(?:_[a-z]+)*)`", told))
    assert codes
    assert codes - API_ERRORS.keys() == set()


def test_every_record_has_its_fields() -> None:
    rows = {names_in(row[0])[0]: names_in(row[1]) for row in table(section("A record"), "type | further fields | written when")}
    records: list[type[BaseModel]] = list(get_args(KnownRecord))
    assert rows == {
        record.model_fields["type"].default: [name for name in record.model_fields if name not in ("type", "at")]
        for record in records
    }


def test_every_call_on_another_run_has_its_fields() -> None:
    rows = table(section("append_checkpoint"), "`calls[].kind` | further fields | what is done")
    documented = {kind: set(names_in(row[1])) for row in rows for kind in names_in(row[0])}
    calls: list[type[BaseModel]] = list(get_args(Call))
    fields = {kind: set(call.model_fields) - {"kind", "key", "ordinal"} for call in calls for kind in kinds_of(call)}
    assert documented.keys() == fields.keys()
    assert {kind: names - documented[kind] for kind, names in fields.items() if names - documented[kind]} == {}


def kinds_of(call: type[BaseModel]) -> Sequence[str]:
    """The values of `kind` that stand for a model."""
    return get_args(call.model_fields["kind"].annotation)


def test_a_message_has_its_fields() -> None:
    rows = table(section("A message"), "field | meaning")
    assert [row[0] for row in rows] == [f"`{name}`" for name in Message.model_fields]


def test_every_end_of_a_segment_is_named() -> None:
    rows = table(section("append_checkpoint"), "`end.to` | further fields | the run becomes")
    ends: list[type[BaseModel]] = list(get_args(SegmentEnd))
    fields = {end.model_fields["to"].default: set(end.model_fields) - {"to"} for end in ends}
    documented = {names_in(row[0])[0]: set(names_in(row[1])) for row in rows}
    assert documented.keys() == {*fields, "queued"}
    assert {to: names - documented[to] for to, names in fields.items() if names - documented[to]} == {}
