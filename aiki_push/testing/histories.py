"""Histories of runs as they are exported: what the API answers, what a handle yields, or records as they are."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias

from pydantic import TypeAdapter, ValidationError

from aiki_push.domain.canonical_json import NotJson, parse_json
from aiki_push.domain.errors import SettingsError
from aiki_push.domain.inbox import Message
from aiki_push.domain.log_records import AnyRecord, InputRecord, Received, StoredRecord, TaskCompleted
from aiki_push.domain.values import Inline, Json, PayloadReference, StoredValue
from aiki_push.ports.api.runs import History, HistoryEntry
from aiki_push.sdk.replay.log_reading import values_in

HistoryPart: TypeAlias = AnyRecord | HistoryEntry | History | Mapping[str, Any]

ExportedHistory: TypeAlias = str | bytes | Mapping[str, Any] | Iterable[HistoryPart]
"""A page of `GET /v1/runs/{id}/history`, a list of such pages, of their entries, or of records: as JSON text, its value, or objects."""

_RECORD: TypeAdapter[AnyRecord] = TypeAdapter(StoredRecord)
_ENTRY = TypeAdapter(HistoryEntry)
_PAGE = TypeAdapter(History)
_MESSAGE = TypeAdapter(Message)


def records_of(history: ExportedHistory) -> list[AnyRecord]:
    """The records of an exported history, in order.

    Raises SettingsError: it is no JSON, something in it is no record, it does not begin with the run's input, pages are missing.
    """
    parts = _parts(history)
    try:
        pages = [part if isinstance(part, History) else _page(part) for part in parts]
    except ValidationError as error:
        raise _unreadable(error, "the history") from None
    records = [entry.record for page in pages for entry in page.entries]
    if not records or not isinstance(records[0], InputRecord):
        raise SettingsError("the history does not begin with the run's input; export it from its first page on")
    if pages[-1].next_cursor is not None:
        raise SettingsError("the history goes on after its last page; export the pages that follow `next_cursor` too")
    return records


def messages_of(records: Sequence[AnyRecord], messages: Iterable[Message | Mapping[str, Any]]) -> tuple[Message, ...]:
    """The run's inbox, checked to have whatever the records say was received. Raises SettingsError."""
    try:
        inbox = tuple(map(_MESSAGE.validate_python, messages))
    except ValidationError as error:
        raise _unreadable(error, "messages") from None
    missing = {record.seq for record in records if isinstance(record, Received)} - {message.seq for message in inbox}
    if missing:
        numbers = ", ".join(map(str, sorted(missing)))
        raise SettingsError(
            f"the run received messages that are not given: {numbers}; pass `messages` with what GET /v1/runs/{{id}}/inbox has"
        )
    return inbox


def values_of(
    records: Sequence[AnyRecord], inbox: Sequence[Message], values: Mapping[str, Json]
) -> Callable[[StoredValue], Json]:
    """The way to what records and messages hold; `values` are those too large for the log. Raises SettingsError where some are missing."""
    stored: list[StoredValue | None] = [record.value for record in records if isinstance(record, InputRecord)]
    stored += [record.output for record in records if isinstance(record, TaskCompleted)]
    stored += values_in(inbox)
    missing = {value.sha256 for value in stored if isinstance(value, PayloadReference)} - values.keys()
    if missing:
        raise SettingsError(
            f"the history refers to values that are not in it: {', '.join(sorted(missing))}; "
            "pass `values` with what GET /v1/runs/{id}/payloads/{sha256} has for each"
        )
    return lambda value: value.value if isinstance(value, Inline) else values[value.sha256]


def _parts(history: ExportedHistory) -> list[object]:
    given: object = history
    if isinstance(history, str | bytes):
        try:
            given = parse_json(history, at="the history")
        except NotJson as error:
            raise SettingsError(str(error)) from None
    return list(given) if isinstance(given, Iterable) and not isinstance(given, Mapping) else [given]


def _page(part: object) -> History:
    match part:
        case HistoryEntry():
            return History(entries=(part,))
        case {"entries": _}:
            return _PAGE.validate_python(part)
        case {"position": _, "record": _}:
            return History(entries=(_ENTRY.validate_python(part),))
        case _:
            return History(entries=(HistoryEntry(position=0, record=_RECORD.validate_python(part)),))


def _unreadable(error: ValidationError, what: str) -> SettingsError:
    first = error.errors(include_input=False, include_url=False)[0]
    return SettingsError(f"{what} cannot be read: {'.'.join(map(str, first['loc']))}: {first['msg']}")
