"""Items from models, and back.

| item            | attributes beside `PK` and `SK`                                          |
|-----------------|--------------------------------------------------------------------------|
| header          | `v`, `etag`, `status`, `revision`, `d`; the keys of the indexes it is in |
| reference       | `v`, `etag`, `d`                                                         |
| slot            | `v`, `etag`, `d`                                                         |
| message         | `v`, `etag`, `d`                                                         |
| watcher         | `v`, `etag`, `d`                                                         |
| event reference | `v`, `etag`, `d`                                                         |
| endpoint        | `v`, `d`                                                                 |

`d` is the model as compact JSON without what is null: a string, or zlib-compressed bytes where that saves write units. `v` is the
version of the format: readers ignore fields they do not know, and refuse a newer `v`. `etag` is fresh in every commit.
"""

import zlib
from dataclasses import dataclass
from typing import TypeVar

from pydantic import ValidationError

from aiki_push.adapters.storage import keys
from aiki_push.adapters.storage.sizes import WRITE_UNIT_BYTES, item_size, text_size, write_units
from aiki_push.adapters.storage.table import INDEX_ATTRIBUTES, AttributeValue, Item, Key, key_of
from aiki_push.domain.endpoints import Endpoint
from aiki_push.domain.errors import InternalError, UnsupportedVersion
from aiki_push.domain.inbox import Message, Watcher
from aiki_push.domain.log_records import LogSlot
from aiki_push.domain.run import Run, RunReference
from aiki_push.domain.values import Stored
from aiki_push.ports.store import Found, ListPlace, Queue, SentEvent

FORMAT = 1
MAX_HEADER_TEXT_BYTES = 200
"""Texts in a header are cut to this size (UTF-8), because every write of the header is billed for all of it."""

ModelT = TypeVar("ModelT", bound=Stored)


@dataclass(frozen=True, slots=True)
class Shards:
    """How many partitions the indexes with shards have: `due` that of deadlines, `listing` each of the two that are listed."""

    due: int = 1
    listing: int = 1


class _EventReference(Stored):
    """What is stored of a SentEvent."""

    event: str
    reference: str


def header_item(run: Run, etag: str, shards: Shards) -> Item:
    """The header as it is stored under a fresh `etag`, with the keys of the indexes that its state puts it in."""
    attributes: dict[str, AttributeValue] = {"etag": etag, "status": run.state.status, "revision": run.revision}
    if run.due_at is not None:
        entry = keys.due_entry(run.namespace, run.id, run.due_at, shards.due)
        attributes.update(zip(INDEX_ATTRIBUTES["due"], entry, strict=True))
    if ready := _ready_entry(run):
        attributes.update(zip(INDEX_ATTRIBUTES["ready"], ready, strict=True))
    group = keys.group_of(run.state.status)
    attributes["by_workflow"] = keys.list_partition(run.namespace, run.workflow, run.id, shards.listing)
    attributes["by_state"] = keys.list_partition(run.namespace, group, run.id, shards.listing)
    attributes["created"] = keys.created(ListPlace(run.created_at, run.id), run.version)
    return _item(keys.header(run.namespace, run.id), _with_short_texts(run), **attributes)


def _ready_entry(run: Run) -> tuple[str, str] | None:
    """A queued run is found in its queue, one that was pulled by the request that did it."""
    if run.ready_at is None:
        return None
    queue = Queue(run.namespace, run.workflow, run.version, run.options.pool)
    entry = keys.ready_entry(queue, run.id, run.ready_at, run.options.priority)
    if run.state.status == "queued":
        return entry
    request_id = run.claim.request_id if run.claim else None
    return keys.claimed_entry(run.namespace, request_id, entry[1]) if request_id is not None else None


def reference_item(reference: RunReference, etag: str) -> Item:
    """A reference as it is stored under a fresh `etag`."""
    key = keys.reference(reference.namespace, reference.workflow, reference.version, reference.reference)
    return _item(key, reference, etag=etag)


def slot_item(namespace: str, run_id: str, slot: LogSlot, etag: str) -> Item:
    """A log slot as it is stored."""
    return _item(keys.slot(namespace, run_id, slot.position), slot, etag=etag)


def message_item(namespace: str, run_id: str, message: Message, etag: str) -> Item:
    """An inbox message as it is stored."""
    return _item(keys.message(namespace, run_id, message.seq), message, etag=etag)


def watcher_item(namespace: str, run_id: str, watcher: Watcher, etag: str) -> Item:
    """A watcher of the run as it is stored under a fresh `etag`."""
    return _item(keys.watcher(namespace, run_id, watcher.run_id), watcher, etag=etag)


def event_reference_item(namespace: str, run_id: str, sent: SentEvent, etag: str) -> Item:
    """What keeps the event from being sent to the run with this reference again, as it is stored."""
    key = keys.event_reference(namespace, run_id, sent.event, sent.reference)
    return _item(key, _EventReference(event=sent.event, reference=sent.reference), etag=etag)


def endpoint_item(endpoint: Endpoint) -> Item:
    """An endpoint as it is stored."""
    return _item(keys.endpoint(endpoint.namespace, endpoint.id), endpoint)


def read_header(item: Item) -> Run:
    """The run, with the `etag` that its next write is conditional on. Raises as `read` does."""
    return _model(Run, item).model_copy(update={"etag": item["etag"]})


def read_reference(item: Item) -> RunReference:
    """The reference, with the `etag` that its next write is conditional on. Raises as `read` does."""
    return _model(RunReference, item).model_copy(update={"etag": item["etag"]})


def read_slot(item: Item) -> LogSlot:
    """The log slot. A record of an unknown type becomes an UnknownRecord. Raises as `read` does."""
    return _model(LogSlot, item)


def read_message(item: Item) -> Message:
    """The inbox message. Raises as `read` does."""
    return _model(Message, item)


def read_watcher(item: Item) -> Watcher:
    """The watcher, with the `etag` that its removal is conditional on. Raises as `read` does."""
    return _model(Watcher, item).model_copy(update={"etag": item["etag"]})


def read_event_reference(item: Item) -> SentEvent:
    """The event and the reference that it was sent with. Raises as `read` does."""
    stored = _model(_EventReference, item)
    return SentEvent(stored.event, stored.reference)


def read_endpoint(item: Item) -> Endpoint:
    """The endpoint. Raises as `read` does."""
    return _model(Endpoint, item)


def read(item: Item) -> Found:
    """The model of any item of the table that has one.

    Raises UnsupportedVersion where a newer release wrote it, InternalError where it does not have its documented shape.
    """
    match str(item["PK"]).partition("#")[0]:
        case "ENDPOINTS":
            return read_endpoint(item)
        case "REF":
            return read_reference(item)
        case "EVENTREF":
            return read_event_reference(item)
    match str(item["SK"])[:2]:
        case keys.HEADER:
            return read_header(item)
        case "L#":
            return read_slot(item)
        case "I#":
            return read_message(item)
        case "W#":
            return read_watcher(item)
        case _:
            raise _unreadable(item, "SK")


def _item(key: Key, model: Stored, **attributes: AttributeValue) -> Item:
    item = {"PK": key.pk, "SK": key.sk, "v": FORMAT, **attributes}
    item["d"] = _packed(model.model_dump_json(exclude_none=True, exclude={"v", "etag"}), item_size(item) + len("d"))
    return item


def _packed(text: str, other_bytes: int) -> str | bytes:
    size = other_bytes + text_size(text)
    if size <= WRITE_UNIT_BYTES:
        return text
    compressed = zlib.compress(text.encode())
    return compressed if write_units(other_bytes + len(compressed)) < write_units(size) else text


def json_size(item: Item) -> int:
    """Bytes of the item's JSON as it was before it was compressed; 0 where it cannot be read."""
    packed = item.get("d", "")
    try:
        return len(zlib.decompress(packed)) if isinstance(packed, bytes) else text_size(str(packed))
    except zlib.error:
        return 0


def _model(model: type[ModelT], item: Item) -> ModelT:
    version, packed = item.get("v"), item.get("d", "")
    if not isinstance(version, int):
        raise _unreadable(item, "v")
    if version != FORMAT:
        raise UnsupportedVersion(
            f"{key_of(item)} was written by a newer release, in format {version}; this one reads format {FORMAT}. "
            "Upgrade this process.",
            format=version,
        )
    try:
        return model.model_validate_json(zlib.decompress(packed) if isinstance(packed, bytes) else str(packed))
    except zlib.error:
        raise _unreadable(item, "d") from None
    except ValidationError as error:
        # The error itself quotes the stored values.
        place = ".".join(str(part) for part in error.errors(include_input=False)[0]["loc"])
        raise _unreadable(item, f"d.{place}" if place else "d") from None


def _unreadable(item: Item, place: str) -> InternalError:
    return InternalError(f"the item {key_of(item)} does not have its documented shape, at {place}")


def _with_short_texts(run: Run) -> Run:
    error = run.offer.last_error
    if error is None or text_size(error) <= MAX_HEADER_TEXT_BYTES:
        return run
    cut = error.encode()[:MAX_HEADER_TEXT_BYTES].decode(errors="ignore")
    return run.model_copy(update={"offer": run.offer.model_copy(update={"last_error": cut})})
